// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/repeat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "trainer/core/error.h"

namespace bench {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Programs kRepeatPrograms = {"/bin/ddlbench", "/bin/ddlrun", "/bin/ddltraind"};

std::string RepeatRefusal(const std::function<void(RepeatOptions&)>& change) {
  RepeatOptions options;
  change(options);
  try {
    CheckRepeatOptions(options);
  } catch (const trainer::Error& error) {
    EXPECT_EQ(error.exit_code(), EX_USAGE);
    return error.what();
  }
  return "";
}

TEST(RepeatCommand, IsMilasConvnetByDefault) {
  EXPECT_THAT(RepeatCommand({}, kRepeatPrograms, "/w/results/x"),
              ElementsAre("/bin/ddlrun", "-n", "1", "/bin/ddltraind", "--mode=training_benchmark",
                          "--arch=resnet101", "--iter_unit=batch", "--num_iter=75",
                          "--warmup_steps=50", "--display_every=1", "--batch_size=64",
                          "--lr_init=0.1", "--precision=fp32", "--results_dir=/w/results/x"));
}

TEST(RepeatCommand, SharesTheBatchOverTheRanks) {
  RepeatOptions options;
  options.devices = 4;
  options.half = true;
  options.data_dir = "/images";
  options.ddlrun = {"--tcp"};
  options.trainer = {"--image_size=64"};
  const std::vector<std::string> command = RepeatCommand(options, kRepeatPrograms, "/w");
  EXPECT_EQ(command[2], "4");
  EXPECT_EQ(command[3], "--tcp");
  EXPECT_THAT(command, Contains("--batch_size=16"));
  EXPECT_THAT(command, Contains("--precision=fp16"));
  EXPECT_THAT(command, Contains("--data_dir=/images"));
  EXPECT_EQ(command.back(), "--image_size=64");
}

TEST(CheckRepeatOptions, RefusesWhatMakesNoSense) {
  EXPECT_EQ(RepeatRefusal([](auto&) {}), "");
  EXPECT_EQ(RepeatRefusal([](auto& o) { o.repeat = 11; }), "");
  EXPECT_THAT(RepeatRefusal([](auto& o) { o.repeat = 10; }),
              HasSubstr("--repeat must be more than 10"));
  EXPECT_THAT(RepeatRefusal([](auto& o) { o.number = 0; }), HasSubstr("--number"));
  EXPECT_THAT(RepeatRefusal([](auto& o) { o.number = 100'000; }), HasSubstr("--number"));
  EXPECT_THAT(RepeatRefusal([](auto& o) { o.devices = 3; }), HasSubstr("multiple of --devices=3"));
  EXPECT_THAT(RepeatRefusal([](auto& o) { o.devices = 0; }), HasSubstr("--devices"));
  EXPECT_THAT(RepeatRefusal([](auto& o) { o.batch_size = 0; }), HasSubstr("--batch_size"));
  EXPECT_THAT(RepeatRefusal([](auto& o) { o.suite = "a.b"; }), HasSubstr("--suite"));
  EXPECT_THAT(RepeatRefusal([](auto& o) { o.name = "../x"; }), HasSubstr("--name"));
  EXPECT_THAT(RepeatRefusal([](auto& o) { o.name = ""; }), HasSubstr("--name"));
}

TEST(VisibleDevices, AreNumbers) {
  EXPECT_EQ(VisibleDevices("", 1), "0");
  EXPECT_EQ(VisibleDevices("", 3), "0,1,2");
  EXPECT_EQ(VisibleDevices("2,3", 1), "2,3");
  EXPECT_EQ(VisibleDevices("GPU-8f3a,GPU-99", 2), "0,1");
  for (const std::string text : {",", "1,", ",1", "1,,2", "-1"}) {
    EXPECT_EQ(VisibleDevices(text, 1), "0") << text;
  }
}

}  // namespace
}  // namespace bench
