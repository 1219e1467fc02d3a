// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/evaluation/evaluate.h"

#include "ddldata/stored_image.h"
#include "tests/ddldata/convert_fixture.h"
#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "tests/trainer/data/png_text.h"
#include "tests/trainer/train/deferred_backend.h"
#include "tests/trainer/train/generated_data_loader.h"
#include "tests/trainer/train/thread_ranks.h"
#include "tests/trainer/train/training_run.h"
#include "trainer/backend/registry.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/core/error.h"
#include "trainer/model/network.h"
#include "trainer/train/state/network_state.h"

namespace trainer {
namespace {

constexpr std::int64_t kImageSize = 32;

// Tells of its batches before it makes them; one of them, from 1 on, may be bad.
class ToldSource final : public DataLoader {
 public:
  explicit ToldSource(const GeneratedSourceOptions& options) : source_(options) {}
  std::int64_t samples() const override { return source_.samples(); }
  void Seek(const Position& position) override { source_.Seek(position); }
  bool Next(HostBatch& batch) override {
    if (logged) logged("next");
    if (--left_until_bad == 0) throw Error(EX_DATAERR, "a bad record");
    return source_.Next(batch);
  }

  std::function<void(const char*)> logged;
  int left_until_bad = 0;

 private:
  GeneratedSource source_;
};

// One rank's side of an evaluation of `samples` images.
class Evaluation {
 public:
  Evaluation(Communicator& communicator, std::int64_t batch, std::int64_t samples,
             std::unique_ptr<Backend> backend = MakeBackend("reference", {}))
      : backend_(std::move(backend)),
        communicator_(communicator),
        network_(*backend_, {"resnet_tiny", batch, kImageSize, kImageSize, 4, 0}),
        device_batch_(*backend_, network_.spec()),
        source_({batch, kImageSize, 4, communicator.rank(), communicator.size(), samples, false}) {
    Initialize(network_, {.weight_init = WeightInit::kFanIn}, *stream_);
  }

  std::optional<EvaluationResult> Run(int stop_after = 0) {
    int requested = 0;
    return Evaluate({*backend_, network_, device_batch_, communicator_, *stream_}, source_, [&] {
      if (source_.logged) source_.logged("count");  // asked at each exchange
      return ++requested == stop_after;
    });
  }

  Network& network() { return network_; }
  Stream& stream() { return *stream_; }
  ToldSource& source() { return source_; }

 private:
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Stream> stream_ = backend_->MakeStream();
  Communicator& communicator_;
  Network network_;
  DeviceBatch device_batch_;
  ToldSource source_;
};

// What an evaluation of three batches of 4 images does, in order.
std::string OrderOf(std::unique_ptr<Backend> backend, int stop_after = 0) {
  OneRank alone;
  Evaluation evaluation(alone, 4, 12, std::move(backend));
  std::string order;
  evaluation.source().logged = [&](const char* what) { order += std::string(what) + " "; };
  EXPECT_EQ(evaluation.Run(stop_after).has_value(), stop_after == 0);
  return order;
}

TEST(Evaluate, CountsEachImageOnceOverAllRanks) {
  OneRank alone;
  const EvaluationResult expected = *Evaluation(alone, 4, 13).Run();
  EXPECT_EQ(expected.images, 13);
  EXPECT_EQ(expected.steps, 4);

  RunRanks(3, [&](Communicator& communicator) {
    const EvaluationResult result = *Evaluation(communicator, 2, 13).Run();
    EXPECT_EQ(result.images, 13);
    EXPECT_EQ(result.steps, 3);
    EXPECT_EQ(result.top1, expected.top1);
    EXPECT_NEAR(result.loss, expected.loss, 1e-6);
  });
}

TEST(Evaluate, OnADeviceTheNextBatchIsFetchedAndTheLastCountedWhileOneIsComputed) {
  EXPECT_EQ(OrderOf(std::make_unique<PromptBackend>()), "next next next count next count count ");
  EXPECT_EQ(OrderOf(MakeBackend("reference", {})), "next count next count next count next ");
}

TEST(Evaluate, OnADeviceTheResultIsThatOfTheHostBitForBit) {
  RunRanks(3, [](Communicator& communicator) {
    const EvaluationResult host = *Evaluation(communicator, 2, 13).Run();
    const EvaluationResult device =
        *Evaluation(communicator, 2, 13, std::make_unique<PromptBackend>()).Run();
    EXPECT_EQ(device.loss, host.loss);
    EXPECT_EQ(device.top1, host.top1);
    EXPECT_EQ(device.top5, host.top5);
    EXPECT_EQ(device.images, host.images);
    EXPECT_EQ(device.steps, host.steps);
  });
}

TEST(Evaluate, OnADeviceItStopsOneBatchLater) {
  EXPECT_EQ(OrderOf(std::make_unique<PromptBackend>(), 1), "next next next count ");
  EXPECT_EQ(OrderOf(std::make_unique<PromptBackend>(), 3),
            "next next next count next count count ");
  EXPECT_EQ(OrderOf(MakeBackend("reference", {}), 1), "next count ");
  RunRanks(2, [](Communicator& communicator) {
    Evaluation evaluation(communicator, 2, 64, std::make_unique<PromptBackend>());
    EXPECT_FALSE(evaluation.Run(communicator.rank() == 1 ? 2 : 0).has_value());
    EXPECT_TRUE(evaluation.Run().has_value());
  });
}

TEST(Evaluate, ABatchThatCannotBeMadeIsAnError) {
  for (const bool on_device : {false, true}) {
    OneRank alone;
    std::unique_ptr<Backend> backend = MakeBackend("reference", {});
    if (on_device) backend = std::make_unique<PromptBackend>();
    Evaluation evaluation(alone, 4, 12, std::move(backend));
    evaluation.source().left_until_bad = 2;
    EXPECT_THROW(evaluation.Run(), Error);
  }
}

TEST(Evaluate, MayRunAgainWithTheSameResult) {
  OneRank alone;
  Evaluation evaluation(alone, 4, 10);
  const double first = evaluation.Run()->loss;
  EXPECT_EQ(evaluation.Run()->loss, first);
}

TEST(Evaluate, UsesTheMeanStatisticsAndPutsBackEachRanksOwn) {
  OneRank alone;
  Evaluation with_mean(alone, 2, 8);
  const std::vector<float> row = ExportStatistics(with_mean.network(), with_mean.stream());
  std::vector<float> doubled = row;
  for (float& value : doubled) value *= 2;
  ImportStatistics(with_mean.network(), doubled, with_mean.stream());
  const double expected = with_mean.Run()->loss;

  RunRanks(2, [&](Communicator& communicator) {
    Evaluation evaluation(communicator, 2, 8);
    std::vector<float> own = row;  // times 1 and 3: mean 2
    for (float& value : own) value *= communicator.rank() == 0 ? 1.0F : 3.0F;
    ImportStatistics(evaluation.network(), own, evaluation.stream());
    EXPECT_NEAR(evaluation.Run()->loss, expected, 1e-6);
    EXPECT_EQ(ExportStatistics(evaluation.network(), evaluation.stream()), own);
  });
}

TEST(Evaluate, AllRanksLeaveWhenOneIsAskedToStop) {
  RunRanks(2, [](Communicator& communicator) {
    Evaluation evaluation(communicator, 2, 64);
    EXPECT_FALSE(evaluation.Run(communicator.rank() == 1 ? 2 : 0).has_value());
  });
}

TEST(Evaluate, RejectsASetWithoutImages) {
  OneRank alone;
  Evaluation evaluation(alone, 2, 0);
  EXPECT_NE(tests::Rejection<Error>(EX_DATAERR, [&] { evaluation.Run(); }), "");
}

// Options of a training are no help to who evaluates.
TEST(Evaluate, RequiresNumbersWithAdviceForItsMode) {
  EvaluationResult result;
  RequireNumbers(result, /*is_of_training=*/false);
  for (const float loss : {INFINITY, -INFINITY, NAN}) {
    result.loss = loss;
    for (const bool is_of_training : {false, true}) {
      try {
        RequireNumbers(result, is_of_training);
        ADD_FAILURE() << "not refused";
      } catch (const NotFinite& rejection) {
        const std::string text = rejection.what();
        EXPECT_EQ(text.find("--lr_init") != std::string::npos, is_of_training) << text;
      }
    }
  }
}

TEST(Predict, ProbabilitiesAreTheSoftmaxAndFall) {
  const std::vector<float> logits = {std::log(1.0F), std::log(3.0F), std::log(2.0F),
                                     std::log(4.0F)};
  const std::vector<Prediction> top = TopClasses(logits, 3);
  ASSERT_EQ(top.size(), 3);
  EXPECT_EQ(top[0].label, 3);
  EXPECT_NEAR(top[0].probability, 0.4, 1e-6);
  EXPECT_EQ(top[1].label, 1);
  EXPECT_NEAR(top[1].probability, 0.3, 1e-6);
  EXPECT_EQ(top[2].label, 2);
}

TEST(Predict, FewClassesAreAllGivenAndTiesGoToTheLower) {
  const std::vector<Prediction> top = TopClasses(std::vector<float>{1000, 1000}, 5);
  ASSERT_EQ(top.size(), 2);
  EXPECT_EQ(top[0].label, 0);
  EXPECT_DOUBLE_EQ(top[0].probability, 0.5);
}

class PredictModeTest : public testing::Test {
 protected:
  PredictModeTest() {
    RunAlone(config_);  // so that there is a checkpoint
    config_.mode = RunMode::kPredict;
    config_.batch_size = 1;
    config_.to_predict = {image_};
  }
  void Write(const fs::path& path, const std::string& bytes) {
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
  }

  const TemporaryDirectory directory_;
  const fs::path image_ = directory_.path() / "n02105855_2933.JPEG";
  const std::string jpeg_ = EncodeJpeg(std::vector<std::uint8_t>(48 * 40 * 3, 90), {48, 40}, {});
  TrainConfig config_ = SmallConfig(directory_.path());
};

TEST_F(PredictModeTest, TellsTheClassesOfAnImageFile) {
  Write(image_, jpeg_);
  const TrainResult result = RunAlone(config_);
  ASSERT_EQ(result.predictions.size(), 1);
  EXPECT_EQ(result.predictions[0].file, image_);
  EXPECT_EQ(result.predictions[0].problem, "");
  ASSERT_EQ(result.predictions[0].classes.size(), 4);  // there are no more classes
  double sum = 0;
  for (const Prediction& prediction : result.predictions[0].classes) {
    sum += prediction.probability;
  }
  EXPECT_NEAR(sum, 1, 1e-6);
  EXPECT_EQ(result.step, 6);
}

// ImageNet has one.
TEST_F(PredictModeTest, ReadsAPngByTheNameOfAJpeg) {
  if (const std::string why = WhyNoPng(); !why.empty()) GTEST_SKIP() << why;
  Write(image_, PngOf({.width = 40,
                       .height = 48,
                       .rows = std::vector<std::string>(48, std::string(120, '\x5a'))}));
  const TrainResult of_png = RunAlone(config_);
  Write(image_, jpeg_);
  const TrainResult of_jpeg = RunAlone(config_);
  ASSERT_EQ(of_png.predictions[0].problem, "");
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(of_png.predictions[0].classes[i].label, of_jpeg.predictions[0].classes[i].label);
    EXPECT_NEAR(of_png.predictions[0].classes[i].probability,
                of_jpeg.predictions[0].classes[i].probability, 0.02);
  }
}

TEST_F(PredictModeTest, TakesFilesAndDirectoriesAndGoesOnBehindABadOne) {
  const fs::path images = directory_.path() / "images";
  Write(image_, jpeg_);
  Write(images / "b" / "1.jpg", jpeg_);
  Write(images / "a.jpg", "this is text");
  Write(images / "c.gif", "GIF89a........");
  Write(images / "notes.txt", "x");
  config_.to_predict = {image_, images};
  const TrainResult result = RunAlone(config_);
  ASSERT_EQ(result.predictions.size(), 4);
  EXPECT_EQ(result.predictions[0].file, image_);
  EXPECT_EQ(result.predictions[1].file, images / "a.jpg");
  EXPECT_NE(result.predictions[1].problem, "");
  EXPECT_TRUE(result.predictions[1].classes.empty());
  EXPECT_EQ(result.predictions[2].file, images / "b" / "1.jpg");
  EXPECT_EQ(result.predictions[2].classes.size(), 4);
  EXPECT_THAT(result.predictions[3].problem, HasSubstr("it is a GIF image"));
}

TEST_F(PredictModeTest, StopsBetweenImages) {
  Write(image_, jpeg_);
  config_.to_predict = {image_, image_, image_};
  const TrainResult result = RunAlone(config_, /*stop_after=*/2);
  EXPECT_EQ(result.ending, Ending::kStopped);
  EXPECT_EQ(result.predictions.size(), 1);
}

TEST_F(PredictModeTest, RejectsToNameClassesByWhatIsNoNumber) {
  Write(image_, jpeg_);
  const fs::path model = CheckpointDirectory(config_.model_dir, 6) / kModelFile;
  const SafetensorsFile file = SafetensorsFile::Read(model.string());
  std::vector<HostTensor> tensors;
  for (const TensorEntry& entry : file.tensors()) {
    if (entry.dtype != DType::kFloat32) continue;
    tensors.push_back({entry.name, entry.shape, ReadValues(file, entry)});
    // Numbers, of which the sums are none.
    if (entry.name == "fc.weight") std::ranges::fill(tensors.back().values, 3e38F);
  }
  config_.init_from = directory_.path() / "huge.safetensors";
  WriteTensorFile(config_.init_from, tensors, {}, "another file");
  EXPECT_THAT(tests::Rejection<Error>(EX_SOFTWARE, [&] { RunAlone(config_); }),
              HasSubstr("the network gives NaN for " + image_.string()));
}

TEST_F(PredictModeTest, RejectsAFileThatIsNotThereByName) {
  EXPECT_THAT(tests::Rejection<Error>([&] { RunAlone(config_); }), HasSubstr(image_.string()));
}

}  // namespace
}  // namespace trainer
