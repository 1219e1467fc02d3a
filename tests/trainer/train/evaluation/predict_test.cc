// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/evaluation/predict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "ddldata/jpeg_encoder.h"
#include "tests/ddldata/convert_fixture.h"
#include "tests/trainer/data/png_text.h"
#include "tests/trainer/train/training_run.h"
#include "trainer/checkpoint/names.h"
#include "trainer/core/error.h"
#include "trainer/train/state/network_state.h"
#include "trainer/train/state/state_dump.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

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

  const TemporaryFolder folder_;
  const fs::path image_ = folder_.path() / "n02105855_2933.JPEG";
  const std::string jpeg_ = EncodeJpeg(std::vector<std::uint8_t>(48 * 40 * 3, 90), {48, 40}, {});
  TrainConfig config_ = SmallConfig(folder_.path());
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

TEST_F(PredictModeTest, TakesFilesAndFoldersAndGoesOnBehindABadOne) {
  const fs::path images = folder_.path() / "images";
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

TEST_F(PredictModeTest, RefusesToNameClassesByWhatIsNoNumber) {
  Write(image_, jpeg_);
  const fs::path model = CheckpointFolder(config_.model_dir, 6) / kModelFile;
  const SafetensorsFile file = SafetensorsFile::Read(model.string());
  std::vector<HostTensor> tensors;
  for (const TensorEntry& entry : file.tensors()) {
    if (entry.dtype != DType::kFloat32) continue;
    tensors.push_back({entry.name, entry.shape, ReadValues(file, entry)});
    // Numbers, of which the sums are none.
    if (entry.name == "fc.weight") std::ranges::fill(tensors.back().values, 3e38F);
  }
  config_.init_from = folder_.path() / "huge.safetensors";
  WriteTensorFile(config_.init_from, tensors, {}, "another file");
  try {
    RunAlone(config_);
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), EX_SOFTWARE);
    EXPECT_THAT(error.what(), HasSubstr("the network gives no numbers for " + image_.string()));
  }
}

TEST_F(PredictModeTest, RefusesAFileThatIsNotThereByName) {
  try {
    RunAlone(config_);
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(image_.string()));
  }
}

}  // namespace
}  // namespace trainer
