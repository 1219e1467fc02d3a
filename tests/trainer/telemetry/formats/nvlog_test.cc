// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/formats/nvlog.h"

#include <gtest/gtest.h>

#include <sstream>

namespace trainer {
namespace {

// The moment of the first line that the Bede documentation shows.
WallClock At1605627653() {
  return [] {
    return TimePoint(std::chrono::duration_cast<TimePoint::duration>(
        std::chrono::nanoseconds(1605627653398838758)));
  };
}

class NvLogTest : public ::testing::Test {
 protected:
  std::ostringstream out_;
  NvLog log_{out_, At1605627653()};
};

TEST_F(NvLogTest, PrintsAnIterationAsBedesDocumentationShowsIt) {
  log_.Step({.launch_step = 0,
             .is_displayed = true,
             .images_per_second = 37.5667719118656,
             .cross_entropy = 9.02121639251709,
             .l2_loss = 0.7498071789741516,
             .total_loss = 9.771023750305176,
             .learning_rate = 0});
  EXPECT_EQ(out_.str(),
            ":::NVLOGv0.2.3 resnet 1605627653.398838758 (training_hooks.py:100) iteration: 0\n"
            ":::NVLOGv0.2.3 resnet 1605627653.398838758 (training_hooks.py:101) imgs_per_sec: "
            "37.5667719118656\n"
            ":::NVLOGv0.2.3 resnet 1605627653.398838758 (training_hooks.py:102) cross_entropy: "
            "9.02121639251709\n"
            ":::NVLOGv0.2.3 resnet 1605627653.398838758 (training_hooks.py:103) l2_loss: "
            "0.7498071789741516\n"
            ":::NVLOGv0.2.3 resnet 1605627653.398838758 (training_hooks.py:104) total_loss: "
            "9.771023750305176\n"
            ":::NVLOGv0.2.3 resnet 1605627653.398838758 (training_hooks.py:105) learning_rate: "
            "0.0\n");
}

TEST_F(NvLogTest, PrintsTheEvaluationAsBedesDocumentationShowsIt) {
  log_.StartEvaluation({.steps = 195, .global_batch = 256});
  log_.EndEvaluation({.top1 = 0.75863, .top5 = 0.92823});
  const std::string start = ":::NVLOGv0.2.3 resnet 1605627653.398838758 (runner.py:";
  EXPECT_EQ(out_.str(), start + "555) Starting Model Evaluation...\n" +  //
                            start + "556) Evaluation Epochs: 1\n" +      //
                            start + "557) Evaluation Steps: 195\n" +     //
                            start + "558) Decay Steps: -1\n" +           //
                            start + "559) Global Batch Size: 256\n" +    //
                            start + "610) Top-1 Accuracy: 75.863\n" +    //
                            start + "611) Top-5 Accuracy: 92.823\n" +    //
                            start + "630) Ending Model Evaluation ...\n");
}

TEST_F(NvLogTest, PrintsTheStartOfTraining) {
  log_.StartTraining({.world_size = 4,
                      .batch_per_rank = 256,
                      .initial_learning_rate = 0.256,
                      .decay_steps = 62550,
                      .momentum = 0.875,
                      .weight_decay = 3.0517578125e-05,
                      .total_steps = 62550,
                      .epochs = 50,
                      .steps_per_epoch = 1251});
  log_.EndTraining({});
  const std::string start = ":::NVLOGv0.2.3 resnet 1605627653.398838758 (runner.py:";
  EXPECT_EQ(out_.str(), start + "365) Starting Model Training...\n" +                 //
                            start + "366) Training Epochs: 50\n" +                    //
                            start + "367) Total Steps: 62550\n" +                     //
                            start + "368) Steps per Epoch: 1251.0\n" +                //
                            start + "369) Decay Steps: 62550\n" +                     //
                            start + "370) Weight Decay Factor: 3.0517578125e-05\n" +  //
                            start + "371) Init Learning Rate: 0.256\n" +              //
                            start + "372) Momentum: 0.875\n" +                        //
                            start + "373) Num GPUs: 4\n" +                            //
                            start + "374) Per-GPU Batch Size: 256\n" +                //
                            start + "488) Ending Model Training ...\n");
}

TEST_F(NvLogTest, PrintsTheEndOfAnEpochAndNoStepThatIsNotDisplayed) {
  log_.Step({.epoch = 3});
  EXPECT_EQ(out_.str(), "");
  log_.Step({.epoch = 3,
             .ends_epoch = true,
             .cross_entropy = 2.5,
             .l2_loss = 0.5,
             .total_loss = 3,
             .learning_rate = 1e-5});
  const std::string start = ":::NVLOGv0.2.3 resnet 1605627653.398838758 (training_hooks.py:";
  EXPECT_EQ(out_.str(), start + "112) epoch: 3\n" +                      //
                            start + "113) final_cross_entropy: 2.5\n" +  //
                            start + "114) final_l2_loss: 0.5\n" +        //
                            start + "115) final_total_loss: 3.0\n" +     //
                            start + "116) final_learning_rate: 1e-05\n");
}

}  // namespace
}  // namespace trainer
