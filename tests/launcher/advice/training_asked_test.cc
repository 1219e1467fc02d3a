// SPDX-License-Identifier: Apache-2.0

#include "launcher/advice/training_asked.h"

#include <gtest/gtest.h>

#include "launcher/base/error.h"

namespace launcher {
namespace {

TEST(TrainingAsked, HasTheDefaultsOfDdltraind) {
  const TrainingAsked asked = ReadTrainingAsked({});
  EXPECT_EQ(asked.batch, 0);
  EXPECT_EQ(asked.precision, "fp32");
  EXPECT_EQ(asked.lr_init, 0.1);
  EXPECT_EQ(asked.num_iter, 1);
  EXPECT_TRUE(asked.counts_epochs);
  EXPECT_FALSE(asked.cosine);
}

TEST(TrainingAsked, IsReadFromTheCommandLineOfBede) {
  const TrainingAsked asked = ReadTrainingAsked(
      {"--mode=train_and_evaluate", "--iter_unit=epoch", "--num_iter=50", "--batch_size=256",
       "--warmup_steps=100", "--use_cosine", "--label_smoothing", "0.1", "--lr_init=0.256",
       "--lr_warmup_epochs=8", "--momentum=0.875", "--weight_decay=3.0517578125e-05", "--data_dir",
       "/data", "--use_cosine_lr", "--precision=fp16", "--reduce_precision=16bit", "--accumulate",
       "2"});
  EXPECT_EQ(asked.batch, 256);
  EXPECT_EQ(asked.num_iter, 50);
  EXPECT_EQ(asked.lr_init, 0.256);
  EXPECT_EQ(asked.warmup_epochs, 8);
  EXPECT_EQ(asked.precision, "fp16");
  EXPECT_EQ(asked.accumulate, 2);
  EXPECT_TRUE(asked.cosine);
  EXPECT_TRUE(asked.has_data);
  EXPECT_TRUE(asked.half_sums);
}

TEST(TrainingAsked, KnowsSwitches) {
  EXPECT_EQ(ReadTrainingAsked({"--use_tf_amp"}).precision, "fp16");
  EXPECT_FALSE(ReadTrainingAsked({"--use_cosine_lr", "--nouse_cosine_lr"}).cosine);
  EXPECT_FALSE(ReadTrainingAsked({"--use_cosine_lr=False"}).cosine);
  EXPECT_EQ(ReadTrainingAsked({"--recipe", "mlperf"}).recipe, "mlperf");
  EXPECT_EQ(ReadTrainingAsked({"--lr_scaling=sqrt"}).lr_scaling, "sqrt");
  EXPECT_EQ(ReadTrainingAsked({"--lr_schedule=polynomial"}).lr_schedule, "polynomial");
  EXPECT_FALSE(ReadTrainingAsked({"--iter_unit", "batch"}).counts_epochs);
}

TEST(TrainingAsked, RefusesANumberThatIsNone) {
  for (const char* const word : {"--batch_size=many", "--batch_size=0", "--batch_size=1e400",
                                 "--num_iter=-1", "--lr_init=nan", "--accumulate=0"}) {
    EXPECT_THROW(ReadTrainingAsked({word}), LaunchError) << word;
  }
}

}  // namespace
}  // namespace launcher
