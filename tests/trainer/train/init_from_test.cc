// SPDX-License-Identifier: Apache-2.0
//
// --init_from with files as other programs write them.

#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "tests/trainer/train/init_from_fixture.h"
#include "trainer/checkpoint/retention.h"
#include "trainer/train/state/network_state.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST_F(InitFromTest, TakesEveryValue) {
  Load();
  const auto loaded = ExportPart(network_, Network::Part::kValue, "", *stream_);
  for (std::size_t i = 0; i < loaded.size(); ++i) {
    EXPECT_EQ(loaded[i].values, tensors_[i].values) << loaded[i].name;
  }
}

TEST_F(InitFromTest, IgnoresNumBatchesTracked) {
  const std::int64_t batches = 1234;
  sources_.push_back({"bn1.num_batches_tracked", DType::kInt64, Shape(), &batches});
  Load();
  EXPECT_EQ(ExportPart(network_, Network::Part::kValue, "", *stream_)[0].values,
            tensors_[0].values);
}

TEST_F(InitFromTest, RejectsAMissingTensorByName) {
  std::erase_if(sources_, [](const TensorReader& s) { return s.name == "layer3.0.bn2.bias"; });
  EXPECT_THAT(Rejection(), AllOf(HasSubstr("weights.safetensors"), HasSubstr("layer3.0.bn2.bias")));
}

TEST_F(InitFromTest, RejectsAnUnknownTensorByName) {
  const float value = 1;
  sources_.push_back({"layer5.0.conv1.weight", DType::kFloat32, Shape{1}, &value});
  EXPECT_THAT(Rejection(), HasSubstr("layer5.0.conv1.weight"));
}

TEST_F(InitFromTest, RejectsAnotherShapeByName) {
  Find("conv1.weight").shape = Shape{8, 3, 49};
  EXPECT_THAT(Rejection(), HasSubstr("conv1.weight"));
}

TEST_F(InitFromTest, RejectsAnotherNumberOfClassesAndSaysWhatToGive) {
  const std::vector<float> values(1000 * 32);
  TensorReader& fc = Find("fc.weight");
  fc.shape = Shape{1000, 32};
  fc.data = values.data();
  EXPECT_THAT(Rejection(),
              AllOf(HasSubstr("1000 classes"), HasSubstr("give --classes=1000, or --new_head")));
  config_.mode = RunMode::kEvaluate;
  fs::remove(config_.init_from);
  EXPECT_THAT(Rejection(), AllOf(HasSubstr("give --classes=1000"), Not(HasSubstr("--new_head"))));
}

TEST_F(InitFromTest, WithANewHeadTakesAllOtherValuesOfANetworkOfAnyClasses) {
  config_.new_head = true;
  const auto begun = ExportPart(network_, Network::Part::kValue, "", *stream_);
  const auto check = [&] {
    Load();
    const auto loaded = ExportPart(network_, Network::Part::kValue, "", *stream_);
    for (std::size_t i = 0; i < loaded.size(); ++i) {
      const bool is_head = loaded[i].name.starts_with("fc.");
      EXPECT_EQ(loaded[i].values, (is_head ? begun : tensors_)[i].values) << loaded[i].name;
    }
    fs::remove(config_.init_from);
  };
  check();
  const std::vector<float> values(1000 * 32, std::numeric_limits<float>::quiet_NaN());
  Find("fc.weight").shape = Shape{1000, 32};
  Find("fc.weight").data = values.data();
  check();
  std::erase_if(sources_, [](const TensorReader& s) { return s.name.starts_with("fc."); });
  check();
  EXPECT_THAT(log_text_.str(), HasSubstr("initial weights of all but the last layer: "));
  std::erase_if(sources_, [](const TensorReader& s) { return s.name == "conv1.weight"; });
  EXPECT_THAT(Rejection(), HasSubstr("tensor 'conv1.weight' is missing"));
}

TEST(InitFromARun, WithANewHeadTrainsForOtherClasses) {
  const TemporaryDirectory directory;
  TrainConfig config = SmallConfig(directory.path());
  config.export_dir = directory.path();
  RunAlone(config);
  TrainConfig other = SmallConfig(directory.path() / "other");
  other.classes = config.classes + 3;
  other.init_from = ExportFile(config);
  other.new_head = true;
  other.schedule.run_iter = 0;
  RunAlone(other);
  const auto begun = TensorsOf(CheckpointDirectory(other.model_dir, 0) / "model.safetensors");
  const auto taken = TensorsOf(ExportFile(config));
  EXPECT_EQ(begun.at("layer3.0.conv1.weight"), taken.at("layer3.0.conv1.weight"));
  EXPECT_EQ(begun.at("bn1.running_var"), taken.at("bn1.running_var"));
  EXPECT_THAT(begun.at("fc.weight"), testing::Contains(testing::Ne(0.0F)));
  EXPECT_EQ(begun.at("fc.bias").size(), static_cast<std::size_t>(other.classes));
  other.schedule.run_iter = -1;
  EXPECT_EQ(RunAlone(other).step, 6);
}

// A ReLU, or an evaluation's arg max, would hide them.
TEST_F(InitFromTest, RejectsValuesThatAreNoNumbersAndVariancesBelowZero) {
  const auto with = [&](const std::string& name, float value) {
    const TensorReader& source = Find(name);
    const auto* values = static_cast<const float*>(source.data);
    std::vector<float> changed(values, values + source.shape.elements());
    changed.back() = value;
    const TensorReader before = source;
    Find(name).data = changed.data();
    const std::string rejection = Rejection();
    Find(name) = before;
    fs::remove(config_.init_from);
    return rejection;
  };
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_THAT(with("conv1.weight", std::numeric_limits<float>::quiet_NaN()),
              AllOf(HasSubstr("weights.safetensors: conv1.weight has the value nan")));
  EXPECT_THAT(with("fc.bias", -kInfinity), HasSubstr("fc.bias has the value -inf"));
  EXPECT_THAT(with("bn1.running_var", -1e-3F), HasSubstr("bn1.running_var has the value -0.001"));
  EXPECT_THAT(log_text_.str(), Not(HasSubstr("initial weights")));
  std::vector<float> variance(Find("bn1.running_var").shape.elements(), 0.0F);
  std::vector<float> mean(variance.size(), -1.0F);
  Find("bn1.running_var").data = variance.data();
  Find("bn1.running_mean").data = mean.data();
  Load();
}

std::string RejectionToEvaluate(const TrainConfig& config) {
  return tests::Rejection<Error>(
      EX_USAGE, [&] { RunAlone(config); }, "not refused");
}

TEST(InitFromARun, TakesItsBestCheckpoint) {
  const TemporaryDirectory directory;
  TrainConfig config = SmallConfig(directory.path());
  config.mode = RunMode::kTrainAndEvaluate;
  config.eval_every = 1;
  config.checkpoint_every = 1;
  config.keep_checkpoints = 100;
  RunAlone(config);
  TrainConfig other = SmallConfig(directory.path() / "other");
  other.mode = RunMode::kEvaluate;
  const auto evaluated = ListEvaluated(directory.path()).known;
  ASSERT_EQ(evaluated.size(), 6U);
  std::map<std::int64_t, double> losses;
  for (const EvaluatedCheckpoint& checkpoint : evaluated) {
    other.init_from = checkpoint.directory / "model.safetensors";
    const EvaluationResult result = *RunAlone(other).evaluation;
    EXPECT_EQ(result.top1, checkpoint.top1);
    losses[checkpoint.step] = result.loss;
  }
  other.init_from = directory.path();
  EXPECT_EQ(RunAlone(other).evaluation->loss, losses.at(BestOf(evaluated)->step));
}

TEST(InitFromARun, RejectsOneWithoutAnEvaluation) {
  const TemporaryDirectory directory;
  RunAlone(SmallConfig(directory.path()));
  TrainConfig config = SmallConfig(directory.path() / "other");
  config.mode = RunMode::kEvaluate;
  config.init_from = directory.path();
  EXPECT_THAT(RejectionToEvaluate(config),
              AllOf(HasSubstr("was evaluated, so none is the best: give a file"),
                    HasSubstr("step-0000000006/model.safetensors")));
  config.init_from = directory.path() / "checkpoints";
  EXPECT_THAT(RejectionToEvaluate(config), HasSubstr("there is no checkpoint in it"));
}

TEST_F(InitFromTest, ATensorFileReplacesAnOlderOneAndLeavesNothingBeside) {
  const std::filesystem::path path = directory_.path() / "twice.safetensors";
  WriteTensorFile(path, {{"x", Shape{2}, {1, 2}}}, {}, "another --export_dir");
  // Of a run that was killed; its number is larger than any that the kernel gives.
  std::ofstream(path.string() + ".partial-1073741824") << "half";
  WriteTensorFile(path, {{"x", Shape{2}, {3, 4}}}, {}, "another --export_dir");
  EXPECT_THAT(TensorsOf(path).at("x"), testing::ElementsAre(3, 4));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_.path()), {}), 1);
}

TEST_F(InitFromTest, ATensorFileThatCannotBeWrittenIsNamed) {
  const std::filesystem::path path = directory_.path() / "missing" / "x.safetensors";
  EXPECT_THAT(tests::Rejection<Error>(
                  EX_OSERR,
                  [&] {
                    WriteTensorFile(path, {{"x", Shape{1}, {1}}}, {}, "another --export_dir");
                  }),
              AllOf(HasSubstr(path.string()), HasSubstr("another --export_dir"),
                    Not(HasSubstr("--model_dir"))));
}

}  // namespace
}  // namespace trainer
