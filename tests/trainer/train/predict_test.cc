// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/predict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "tests/trainer/train/training_run.h"
#include "trainer/checkpoint/names.h"
#include "trainer/core/error.h"
#include "trainer/data/tool/jpeg_encoder.h"
#include "trainer/train/network_state.h"
#include "trainer/train/state_dump.h"

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
    config_.to_predict = folder_.path() / "image.jpg";
  }
  void WriteImage(const std::string& bytes) {
    std::ofstream(config_.to_predict, std::ios::binary) << bytes;
  }

  const TemporaryFolder folder_;
  TrainConfig config_ = SmallConfig(folder_.path());
};

TEST_F(PredictModeTest, TellsTheClassesOfAnImageFile) {
  const std::vector<std::uint8_t> pixels(48 * 40 * 3, 90);
  WriteImage(EncodeJpeg(pixels, {48, 40}, {}));
  const TrainResult result = RunAlone(config_);
  ASSERT_EQ(result.predictions.size(), 4);  // there are no more classes
  double sum = 0;
  for (const Prediction& prediction : result.predictions) sum += prediction.probability;
  EXPECT_NEAR(sum, 1, 1e-6);
  EXPECT_EQ(result.step, 6);
}

TEST_F(PredictModeTest, RefusesToNameClassesByWhatIsNoNumber) {
  WriteImage(EncodeJpeg(std::vector<std::uint8_t>(48 * 40 * 3, 90), {48, 40}, {}));
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
    EXPECT_THAT(error.what(),
                HasSubstr("the network gives no numbers for " + config_.to_predict.string()));
  }
}

TEST_F(PredictModeTest, RefusesAFileThatIsNoJpegByName) {
  WriteImage("this is text");
  try {
    RunAlone(config_);
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), EX_DATAERR);
    EXPECT_THAT(error.what(), HasSubstr(config_.to_predict.string()));
  }
}

TEST_F(PredictModeTest, RefusesAFileThatIsNotThereByName) {
  try {
    RunAlone(config_);
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(config_.to_predict.string()));
  }
}

}  // namespace
}  // namespace trainer
