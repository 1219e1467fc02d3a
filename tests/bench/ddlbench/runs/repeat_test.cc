// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/runs/repeat.h"

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
  RepeatOptions options = WithMilaDefaults({}, "");
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
  EXPECT_THAT(RepeatCommand(WithMilaDefaults({}, "0,1"), kRepeatPrograms, "/w/results/x"),
              ElementsAre("/bin/ddlrun", "-n", "1", "/bin/ddltraind", "--mode=training_benchmark",
                          "--arch=resnet101", "--iter_unit=batch", "--num_iter=75",
                          "--warmup_steps=50", "--display_every=1", "--batch_size=64",
                          "--lr_init=0.1", "--precision=fp32", "--results_dir=/w/results/x"));
}

TEST(RepeatCommand, SharesTheBatchOverTheRanks) {
  RepeatOptions options = WithMilaDefaults({}, "");
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
  EXPECT_THAT(RepeatRefusal([](auto& o) { o.copies = 0; }), HasSubstr("--copies=0"));
  EXPECT_EQ(RepeatRefusal([](auto& o) { o.copies = 4; }), "");
  EXPECT_THAT(RepeatRefusal([](auto& o) { o.copies = o.devices = 2; }), HasSubstr("--devices=2"));
  EXPECT_THAT(RepeatRefusal([](auto& o) {
                o.copies = 2;
                o.ddlrun = {"--tcp"};
              }),
              HasSubstr("leave out --ddlrun"));
  EXPECT_THAT(RepeatRefusal([](auto& o) { o.name = "loader"; }), HasSubstr("--data_dir"));
  const auto refusal_of_loader = [](const std::function<void(RepeatOptions&)>& change) {
    return RepeatRefusal([&](RepeatOptions& o) {
      o.name = "loader";
      o.data_dir = "/images";
      change(o);
    });
  };
  EXPECT_EQ(refusal_of_loader([](auto&) {}), "");
  EXPECT_THAT(refusal_of_loader([](auto& o) { o.copies = 2; }), HasSubstr("trains nothing"));
  EXPECT_THAT(refusal_of_loader([](auto& o) { o.devices = 2; }), HasSubstr("trains nothing"));
  EXPECT_THAT(refusal_of_loader([](auto& o) { o.ddlrun = {"-v"}; }), HasSubstr("trains nothing"));
  EXPECT_THAT(refusal_of_loader([](auto& o) { o.trainer = {"-v"}; }), HasSubstr("trains nothing"));
}

TEST(WithMilaDefaults, AreThoseOfTheBenchmarkUnlessTheyAreGiven) {
  const auto resolved = [](const std::string& name, const std::string& visible) {
    RepeatOptions options;
    options.name = name;
    return WithMilaDefaults(options, visible);
  };
  EXPECT_EQ(resolved("convnet", "0,1").batch_size, 64);
  EXPECT_EQ(resolved("convnet", "0,1").devices, 1);
  EXPECT_FALSE(resolved("convnet", "").half);
  EXPECT_EQ(resolved("convnet_fp16", "").batch_size, 128);
  EXPECT_TRUE(resolved("convnet_fp16", "").half);
  EXPECT_EQ(resolved("convnet_distributed", "0,1,2,3").devices, 4);
  EXPECT_EQ(resolved("loader", "0,1").devices, 1);
  EXPECT_EQ(resolved("loader", "").batch_size, 256);
  EXPECT_THROW(resolved("convnet_distributed", ""), trainer::Error);
  RepeatOptions given;
  given.name = "convnet_distributed_fp16";
  given.batch_size = 8;
  given.devices = 2;
  EXPECT_EQ(WithMilaDefaults(given, "0,1,2,3").batch_size, 8);
  EXPECT_EQ(WithMilaDefaults(given, "0,1,2,3").devices, 2);
}

TEST(RepeatCommand, OfSeveralCopiesIsTheTrainerItself) {
  RepeatOptions options = WithMilaDefaults({}, "");
  options.copies = 2;
  const std::vector<std::string> command = RepeatCommand(options, kRepeatPrograms, "/w");
  EXPECT_EQ(command.front(), "/bin/ddltraind");
  EXPECT_THAT(command, Contains("--batch_size=64"));
}

TEST(DeviceOfCopy, IsThatOfItsPlace) {
  EXPECT_EQ(DeviceOfCopy("", 2, 4), "2");
  EXPECT_EQ(DeviceOfCopy("4,5,7", 2, 3), "7");
  EXPECT_EQ(DeviceOfCopy("GPU-8f3a,GPU-99", 1, 2), "GPU-99");
  EXPECT_THROW(DeviceOfCopy("4,5,7", 0, 4), trainer::Error);
}

TEST(CpusOfCopy, AreAnEvenShareSideBySide) {
  const std::vector<int> cpus = {0, 1, 2, 3, 8, 9, 10};
  EXPECT_THAT(CpusOfCopy(cpus, 0, 2), ElementsAre(0, 1, 2));
  EXPECT_THAT(CpusOfCopy(cpus, 1, 2), ElementsAre(3, 8, 9, 10));
  EXPECT_THAT(CpusOfCopy(cpus, 6, 7), ElementsAre(10));
  EXPECT_EQ(CpusOfCopy(cpus, 3, 8), cpus);
}

TEST(DescribeMilaRun, OfACopyHasItsDeviceAndCores) {
  RepeatOptions options = WithMilaDefaults({}, "");
  MilaSurroundings surroundings;
  surroundings.visible_devices = "4,5";
  surroundings.cpus = {0, 1, 2, 3, 4, 5};
  EXPECT_EQ(DescribeMilaRun(options, surroundings, 0).vcd, "4,5");
  EXPECT_EQ(DescribeMilaRun(options, surroundings, 0).cpu_cores, 6);
  options.copies = 2;
  EXPECT_EQ(DescribeMilaRun(options, surroundings, 1).vcd, "5");
  EXPECT_EQ(DescribeMilaRun(options, surroundings, 1).cpu_cores, 3);
  EXPECT_FALSE(DescribeMilaRun(options, surroundings, 1).is_loader);
  // mlbench-report reads numbers only.
  surroundings.visible_devices = "GPU-8f3a,GPU-99";
  EXPECT_EQ(DescribeMilaRun(options, surroundings, 1).vcd, "1");
  options.copies = 1;
  options.name = "loader";
  EXPECT_TRUE(DescribeMilaRun(options, surroundings, 0).is_loader);
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
