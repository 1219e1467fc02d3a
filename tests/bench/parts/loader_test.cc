// SPDX-License-Identifier: Apache-2.0

#include "bench/parts/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "trainer/core/error.h"

namespace bench {
namespace {

using ::testing::HasSubstr;

std::string LoaderRefusal(const std::function<void(LoaderOptions&)>& change) {
  LoaderOptions options;
  change(options);
  try {
    CheckLoaderOptions(options);
  } catch (const trainer::Error& error) {
    EXPECT_EQ(error.exit_code(), EX_USAGE);
    return error.what();
  }
  return "";
}

TEST(CheckLoaderOptions, RefusesWhatMakesNoSense) {
  EXPECT_EQ(LoaderRefusal([](auto&) {}), "");
  EXPECT_THAT(LoaderRefusal([](auto& o) { o.batch_size = 0; }), HasSubstr("--batch_size=0"));
  EXPECT_THAT(LoaderRefusal([](auto& o) { o.image_size = 0; }), HasSubstr("--image_size=0"));
  EXPECT_THAT(LoaderRefusal([](auto& o) { o.prefetch = 0; }), HasSubstr("--prefetch=0"));
  EXPECT_THAT(LoaderRefusal([](auto& o) { o.steps = 0; }), HasSubstr("--steps=0"));
  EXPECT_EQ(LoaderRefusal([](auto& o) { o.warmup_steps = 0; }), "");
  EXPECT_THAT(LoaderRefusal([](auto& o) { o.warmup_steps = -1; }), HasSubstr("--warmup_steps=-1"));
  EXPECT_THAT(LoaderRefusal([](auto& o) { o.rounds = 0; }), HasSubstr("--rounds=0"));
  EXPECT_THAT(LoaderRefusal([](auto& o) { o.take_rate = -1; }), HasSubstr("--take_rate=-1"));
  EXPECT_THAT(LoaderRefusal([](auto& o) { o.threads = {2, 0}; }), HasSubstr("--threads=0"));
}

TEST(RecordOptions, AreThoseOfATraining) {
  LoaderOptions options;
  options.data_dir = "/images";
  options.data_idx_dir = "/index";
  options.batch_size = 12;
  options.image_size = 64;
  options.prefetch = 5;
  const trainer::RecordSourceOptions records = RecordOptions(options, 3, 1, 4);
  EXPECT_EQ(records.data_dir, "/images");
  EXPECT_EQ(records.data_idx_dir, "/index");
  EXPECT_EQ(records.split, trainer::Split::kTrain);
  EXPECT_TRUE(records.training);
  EXPECT_TRUE(records.shuffle);
  EXPECT_EQ(records.augment, trainer::Augment::kTrain);
  EXPECT_EQ(records.batch_size, 12);
  EXPECT_EQ(records.image_size, 64);
  EXPECT_EQ(records.threads, 3);
  EXPECT_EQ(records.rank, 1);
  EXPECT_EQ(records.world_size, 4);
  EXPECT_EQ(records.prefetch, 5);
  EXPECT_EQ(records.bad_records, trainer::BadRecords::kStop);
  EXPECT_EQ(records.augmentation, trainer::Augmentation::kTensorFlow);
  options.augmentation = "torchvision";
  EXPECT_EQ(RecordOptions(options, 1, 0, 1).augmentation, trainer::Augmentation::kTorchvision);
  options.bad_records = "skip";
  EXPECT_EQ(RecordOptions(options, 1, 0, 1).bad_records, trainer::BadRecords::kSkip);
}

}  // namespace
}  // namespace bench
