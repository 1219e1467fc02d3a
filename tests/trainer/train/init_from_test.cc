// SPDX-License-Identifier: Apache-2.0

#include <list>

#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "tests/trainer/train/init_from_fixture.h"
#include "trainer/checkpoint/retention.h"
#include "trainer/train/state/network_state.h"

namespace trainer {
namespace {

// --init_from with files as other programs write them.

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
  const auto begun = TensorsAt(other.model_dir, 0);
  const auto taken = TensorsOf(ExportFile(config));
  EXPECT_EQ(begun.at("layer3.0.conv1.weight"), taken.at("layer3.0.conv1.weight"));
  EXPECT_EQ(begun.at("bn1.running_var"), taken.at("bn1.running_var"));
  EXPECT_THAT(begun.at("fc.weight"), Contains(testing::Ne(0.0F)));
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
  EXPECT_THAT(with("bn1.running_var", -1e-3F),
              HasSubstr("bn1.running_var has the value -0.001000: weights that are NaN or "
                        "infinite, and variances below 0, cannot be used"));
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
  const fs::path path = directory_.path() / "twice.safetensors";
  WriteTensorFile(path, {{"x", Shape{2}, {1, 2}}}, {}, "another --export_dir");
  // Of a run that was killed; its number is larger than any that the kernel gives.
  std::ofstream(path.string() + ".partial-1073741824") << "half";
  WriteTensorFile(path, {{"x", Shape{2}, {3, 4}}}, {}, "another --export_dir");
  EXPECT_THAT(TensorsOf(path).at("x"), ElementsAre(3, 4));
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_.path()), {}), 1);
}

TEST_F(InitFromTest, ATensorFileThatCannotBeWrittenIsNamed) {
  const fs::path path = directory_.path() / "missing" / "x.safetensors";
  EXPECT_THAT(tests::Rejection<Error>(
                  EX_OSERR,
                  [&] {
                    WriteTensorFile(path, {{"x", Shape{1}, {1}}}, {}, "another --export_dir");
                  }),
              AllOf(HasSubstr(path.string()), HasSubstr("another --export_dir"),
                    Not(HasSubstr("--model_dir"))));
}

// --init_from with the names and types that other programs give to a ResNet's values.

class ForeignWeightsTest : public InitFromTest {
 protected:
  void Reset() {
    fs::remove(config_.init_from);
    sources_ = SourcesOf(tensors_);
    log_text_.str("");
  }

  void Prefix(const std::string& prefix) {
    for (TensorReader& source : sources_) source.name = prefix + source.name;
  }

  void ExpectTaken(bool with_head = true) {
    const auto loaded = ExportPart(network_, Network::Part::kValue, "", *stream_);
    for (std::size_t i = 0; i < loaded.size(); ++i) {
      if (!with_head && loaded[i].name.starts_with("fc.")) continue;
      EXPECT_EQ(loaded[i].values, tensors_[i].values) << loaded[i].name;
    }
  }

  // Values that 16 bits hold, as `bits` has them, in sources_ and tensors_.
  template <typename Bits>
  void Narrow(DType dtype, const Bits& bits) {
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
      std::vector<std::uint16_t>& halves = halves_.emplace_back();
      for (std::size_t i = 0; i < tensors_[t].values.size(); ++i) {
        const auto exponent = static_cast<int>(i % 8);  // 2^exponent
        tensors_[t].values[i] = std::ldexp(1.0F, exponent);
        halves.push_back(bits(exponent));
      }
      sources_[t].dtype = dtype;
      sources_[t].data = halves.data();
    }
  }

  std::list<std::vector<std::uint16_t>> halves_;
};

TEST_F(ForeignWeightsTest, APrefixOfAllNamesIsTakenOffWithANote) {
  for (const std::string prefix :
       {"module.", "model.", "backbone.", "module.encoder_q.", "net.0.", "stage 1."}) {
    Prefix(prefix);
    Load();
    ExpectTaken();
    EXPECT_THAT(log_text_.str(), HasSubstr("the prefix '" + prefix + "' of the names in " +
                                           config_.init_from.string() + " is taken off"));
    Reset();
  }
  Load();
  EXPECT_THAT(log_text_.str(), Not(HasSubstr("prefix")));
}

TEST_F(ForeignWeightsTest, LayersOfCompileAndFsdpAreTakenOutOfNames) {
  for (const std::string prefix : {"_orig_mod.", "module._orig_mod.", "_orig_mod.module.",
                                   "_fsdp_wrapped_module.", "model._orig_mod."}) {
    Prefix(prefix);
    Load();
    ExpectTaken();
    EXPECT_THAT(log_text_.str(), HasSubstr("torch.compile or FSDP"));
    Reset();
  }
  for (TensorReader& source : sources_) {
    if (source.name.starts_with("layer1.")) source.name.insert(7, "_orig_mod.");
  }
  Load();
  ExpectTaken();
}

TEST_F(ForeignWeightsTest, CountersOfWrappersAreIgnored) {
  const std::int64_t count = 7;
  const float as_float = 7;
  Prefix("module.");
  sources_.push_back({"n_averaged", DType::kInt64, Shape(), &count});
  sources_.push_back({"module.bn1.num_batches_tracked", DType::kInt64, Shape(), &count});
  sources_.push_back({"module.layer1.0.bn1.num_batches_tracked", DType::kFloat32, {1}, &as_float});
  Load();
  ExpectTaken();
}

TEST_F(ForeignWeightsTest, ValuesOf16BitsAreWidenedWithANote) {
  const auto half = [](int exponent) { return static_cast<std::uint16_t>((15 + exponent) << 10); };
  const auto brain = [](int exponent) { return static_cast<std::uint16_t>((127 + exponent) << 7); };
  Narrow(DType::kFloat16, half);
  Load();
  ExpectTaken();
  EXPECT_THAT(log_text_.str(), HasSubstr(std::to_string(tensors_.size()) + " tensors of F16 in"));
  Reset();
  Narrow(DType::kBFloat16, brain);
  Load();
  ExpectTaken();
  EXPECT_THAT(log_text_.str(), HasSubstr(std::to_string(tensors_.size()) + " tensors of BF16 in"));
  Reset();
  // Some of each, with a prefix, as autocast to one type leaves the statistics.
  Narrow(DType::kFloat16, half);
  sources_[1] = SourcesOf(tensors_)[1];
  Prefix("module.");
  Load();
  ExpectTaken();
  EXPECT_THAT(log_text_.str(),
              HasSubstr(std::to_string(tensors_.size() - 1) + " tensors of F16 in"));
}

TEST_F(ForeignWeightsTest, AnInfinityOf16BitsIsRejected) {
  Narrow(DType::kFloat16,
         [](int exponent) { return static_cast<std::uint16_t>(exponent == 3 ? 0x7c00 : 0x3c00); });
  EXPECT_THAT(Rejection(), HasSubstr("conv1.weight has the value inf"));
}

TEST_F(ForeignWeightsTest, ABackboneWithoutAHeadNeedsANewOne) {
  std::erase_if(sources_, [](const TensorReader& s) { return s.name.starts_with("fc."); });
  Prefix("backbone.");
  const float value = 1;
  EXPECT_THAT(Rejection(), AllOf(HasSubstr("it has no last layer"), HasSubstr("give --new_head")));
  fs::remove(config_.init_from);
  sources_.push_back({"head.fc.weight", DType::kFloat32, {1}, &value});
  EXPECT_THAT(Rejection(),
              AllOf(HasSubstr("tensor 'head.fc.weight' has not the prefix 'backbone.'"),
                    HasSubstr("give --new_head")));
  fs::remove(config_.init_from);
  config_.mode = RunMode::kEvaluate;
  EXPECT_THAT(Rejection(), Not(HasSubstr("--new_head")));
  config_.mode = RunMode::kTrain;
  config_.new_head = true;
  fs::remove(config_.init_from);
  Load();
  ExpectTaken(/*with_head=*/false);
  EXPECT_THAT(log_text_.str(), HasSubstr("1 tensor without it left out, the first is head.fc"));
}

TEST_F(ForeignWeightsTest, SeveralNetworksInOneFileAreRejected) {
  Prefix("student.");
  for (TensorReader source : SourcesOf(tensors_)) {
    source.name = "teacher." + source.name;
    sources_.push_back(source);
  }
  EXPECT_THAT(Rejection(), AllOf(HasSubstr("several networks, with 'student.' and 'teacher.'"),
                                 Not(HasSubstr("--model_dir"))));
}

TEST_F(ForeignWeightsTest, TheAdviceIsAboutTheFile) {
  for (TensorReader& source : sources_) source.name = "resnet.embedder/" + source.name.substr(2);
  std::erase_if(sources_, [](const TensorReader& s) { return s.name.ends_with("conv1.weight"); });
  EXPECT_THAT(Rejection(), AllOf(HasSubstr("give weights of a ResNet with torchvision's names"),
                                 Not(HasSubstr("--model_dir"))));
  Reset();
  Find("conv1.weight").shape = Shape{8, 3, 49};
  EXPECT_THAT(Rejection(),
              AllOf(HasSubstr("it is of another network: give weights of a resnet_tiny"),
                    Not(HasSubstr("--model_dir"))));
  Reset();
  const float value = 1;
  const std::array<int, 4> depths = {3, 4, 23, 3};
  for (std::size_t layer = 0; layer < depths.size(); ++layer) {
    for (int block = 0; block < depths[layer]; ++block) {
      const std::string name =
          "layer" + std::to_string(layer + 1) + "." + std::to_string(block) + ".conv3.weight";
      std::erase_if(sources_, [&](const TensorReader& s) { return s.name == name; });
      sources_.push_back({name, DType::kFloat32, {1}, &value});
    }
  }
  EXPECT_THAT(Rejection(), AllOf(HasSubstr("another network: give --arch=resnet101"),
                                 Not(HasSubstr("--model_dir"))));
}

TEST_F(ForeignWeightsTest, DirectoriesAndPartsOfOtherProgramsAreNamed) {
  const fs::path directory = directory_.path() / "hub";
  fs::create_directory(directory);
  const auto rejection = [&](const fs::path& from) {
    config_.init_from = from;
    return tests::Rejection<Error>([&] {
      InitializeFromFile({config_, network_, communicator_, *stream_, log_});
    });
  };
  EXPECT_THAT(rejection(directory),
              HasSubstr("neither a file of weights nor the directory of a run"));
  std::ofstream(directory / "model.safetensors") << "x";
  EXPECT_THAT(rejection(directory), HasSubstr("give a file in it, such as " +
                                              (directory / "model.safetensors").string()));
  std::ofstream(directory / "model.ckpt-5.index") << "x";
  EXPECT_THAT(rejection(directory / "model.ckpt-5"), HasSubstr("a TensorFlow checkpoint"));
  EXPECT_THAT(rejection(directory / "model.ckpt-6"), HasSubstr("No such file"));
}

}  // namespace
}  // namespace trainer
