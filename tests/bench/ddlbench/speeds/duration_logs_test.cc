// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/speeds/duration_logs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "bench/ddlbench/speeds/variability.h"
#include "tests/bench/ddlbench/unreadable_folder.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(DurationLogs, NamesTellRunAndHost) {
  const LogName expected = {"1649888832", "c205-007"};
  for (const char* name : {"resnet_iterdur_1649888832_c205-007.txt",
                           "resnet_multi_iterdur_1649888832_c205-007_nnodes1_bsz64_run_2.txt"}) {
    EXPECT_EQ(ParseDurationsName(name), expected) << name;
  }
  EXPECT_EQ(ParseTableName("resnet_123_1649888832_c205-007.csv"), expected);
  const LogName underscored = {"17", "gpu_node_3"};
  EXPECT_EQ(ParseDurationsName("resnet_iterdur_17_gpu_node_3.txt"), underscored);
  EXPECT_EQ(ParseDurationsName("resnet_multi_iterdur_17_gpu_node_3_nnodes1_run_0.txt"),
            underscored);
  EXPECT_EQ(ParseTableName("resnet_99_17_gpu_node_3.csv"), underscored);
  for (const char* name : {"iterdur_1_c.txt", "resnet_iterdur_x_c.txt", "resnet_iterdur_1.txt",
                           "resnet_iterdur_1_c.csv", "log.json", ""}) {
    EXPECT_FALSE(ParseDurationsName(name)) << name;
  }
  for (const char* name : {"resnet_1_c.csv", "resnet_a_1_c.csv", "profile.csv", "r_1_2_.csv"}) {
    EXPECT_FALSE(ParseTableName(name)) << name;
  }
}

class DurationLogsTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  DeviceRuns Read() { return ReadDurationLogs({folder_.string()}, complaints_); }

  fs::path folder_;
  std::vector<std::string> told_;
  Complaints complaints_{[this](const std::string& text) { told_.push_back(text); }};
};

TEST_F(DurationLogsTest, ReadsTheIterationsOfEachDeviceButTheFirst) {
  Write("resnet_iterdur_17_c1.txt",
        "rank = 0, world_size = 2, device_ids = 0\n"
        "\nIteration Duration 0 0 : 9.5\n\nIteration Duration 0 1 : 8.5\n"
        "\nIteration Duration 1 0 : 0.5\n\nIteration Duration 1 1 : 0.25Iteration Duration 2 0 : "
        "1e-1\n"
        "\nTraining time: 0:00:10.500000\nIteration Duration 3 0 : 7\n");
  const DeviceRuns runs = Read();
  EXPECT_THAT(told_, IsEmpty());
  ASSERT_EQ(runs.size(), 2);
  EXPECT_THAT(runs.at({"c1", 0}).at("17").durations, ElementsAre(0.5, 0.1));
  EXPECT_THAT(runs.at({"c1", 1}).at("17").durations, ElementsAre(0.25));
}

TEST_F(DurationLogsTest, WhatIsWrongIsToldAndTheRestCounts) {
  Write(
      "resnet_iterdur_17_c1.txt",
      "\nIteration Duration 0 0 : 9\n\nIteration Duration 1 0 : 0.5\n\nIteration Duration 2 0 : "
      "fast\n\nIteration Duration 3 0 : -1\n\xff\xfe\n\nIteration Duration 4 0 : 0.7\n\nIteration "
      "Dura");
  Write("resnet_iterdur_18_c1.txt", "");
  const DeviceRuns runs = Read();
  EXPECT_THAT(runs.at({"c1", 0}).at("17").durations, ElementsAre(0.5, 0.7));
  const std::string path = (folder_ / "resnet_iterdur_17_c1.txt").string();
  EXPECT_THAT(told_, ElementsAre(path + ":6: no duration of an iteration; it is left out",
                                 path + ":8: no duration of an iteration; it is left out",
                                 (folder_ / "resnet_iterdur_18_c1.txt").string() +
                                     ": no two iterations on one device; it is left out"));
  EXPECT_EQ(complaints_.exit_code(), EX_DATAERR);
}

TEST_F(DurationLogsTest, ALineThatIsNotWholeIsANote) {
  Write("resnet_iterdur_17_c1.txt",
        "\nIteration Duration 0 0 : 9\n\nIteration Duration 1 0 : 0.5\n\nIteration Duration 2 0");
  EXPECT_THAT(Read().at({"c1", 0}).at("17").durations, ElementsAre(0.5));
  ASSERT_EQ(told_.size(), 1);
  EXPECT_THAT(told_[0], HasSubstr(":6: the last line is not whole"));
  EXPECT_EQ(complaints_.exit_code(), EX_OK);
}

// What was cut off of a number leaves another number.
TEST_F(DurationLogsTest, HalfANumberIsNoDuration) {
  Write("resnet_iterdur_17_c1.txt",
        "\nIteration Duration 0 0 : 9\n\nIteration Duration 1 0 : 0.5\n\nIteration Duration 2 0 : "
        "0.2");
  EXPECT_THAT(Read().at({"c1", 0}).at("17").durations, ElementsAre(0.5));
  EXPECT_THAT(told_, ElementsAre(HasSubstr(":6: the last line is not whole; it is left out")));
  EXPECT_EQ(complaints_.exit_code(), EX_OK);
}

TEST_F(DurationLogsTest, HostsWhoseNamesBeginAlikeAreTwo) {
  const std::string text = "\nIteration Duration 0 0 : 9\n\nIteration Duration 1 0 : ";
  Write("resnet_iterdur_17_gpu_1.txt", text + "0.5\n");
  Write("resnet_iterdur_17_gpu_2.txt", text + "0.25\n");
  const DeviceRuns runs = Read();
  EXPECT_THAT(told_, IsEmpty());
  EXPECT_THAT(runs.at({"gpu_1", 0}).at("17").durations, ElementsAre(0.5));
  EXPECT_THAT(runs.at({"gpu_2", 0}).at("17").durations, ElementsAre(0.25));
}

TEST_F(DurationLogsTest, ARunThatTwoFilesHaveIsTold) {
  fs::create_directories(folder_ / "copy");
  const std::string text = "\nIteration Duration 0 0 : 9\n\nIteration Duration 1 0 : ";
  Write("copy/resnet_iterdur_17_c1.txt", text + "0.5\n");
  Write("resnet_iterdur_17_c1.txt", text + "0.25\n");
  EXPECT_THAT(Read().at({"c1", 0}).at("17").durations, ElementsAre(0.5));
  EXPECT_THAT(told_, ElementsAre((folder_ / "resnet_iterdur_17_c1.txt").string() +
                                 ": another file has durations of the run 17 on device 0 of c1; "
                                 "these are left out"));
  EXPECT_EQ(complaints_.exit_code(), EX_DATAERR);
}

// Rows as nvprof itself has written them.
TEST_F(DurationLogsTest, FiguresAreMediansBetweenTheFirstAndTheLastKernel) {
  Write("resnet_iterdur_17_c1.txt",
        "\nIteration Duration 0 1 : 9\n\nIteration Duration 1 1 : 0.5\n");
  const std::string before = ",,,,,,,,,,,,,,,\"NVIDIA TITAN V (1)\",,,\"";
  const std::string kernel =
      ",71.4,10063,1,1,64,1,1,32,0,0,,,,,\"NVIDIA TITAN V (1)\",\"1\",\"7\",,\"spmv\",127\n";
  Write("resnet_99_17_c1.csv",
        "==9== NVPROF is profiling process 9\n"
        "\"Start\",\"Duration\",\"Grid X\",\"Grid Y\",\"Grid Z\",\"Block X\",\"Block Y\",\"Block "
        "Z\",\"Registers Per Thread\",\"Static SMem\",\"Dynamic SMem\",\"Size\",\"Throughput\","
        "\"SrcMemType\",\"DstMemType\",\"Device\",\"Context\",\"Stream\",\"System\",\"Name\","
        "\"Correlation_ID\"\n"
        "s,ms,,,,,,,,B,B,MB,GB/s,,,,,,,,\n"
        "0.1" +
            before +
            "135/850\",\"[SM/Memory Clock (MHz)]\",\n"
            "0.2" +
            kernel + "0.3" + before +
            "1200/850\",\"[SM/Memory Clock (MHz)]\",\n"
            "0.4" +
            before +
            "1300/850\",\"[SM/Memory Clock (MHz)]\",\n"
            "0.4" +
            before +
            "58\",\"[Temperature (C)]\",\n"
            "0.4" +
            before +
            "40500/250000\",\"[Power/Limit (mW)]\",\n"
            "0.5" +
            kernel + "0.6" + before + "90\",\"[Temperature (C)]\",\n");
  const DeviceRun run = Read().at({"c1", 1}).at("17");
  EXPECT_THAT(told_, IsEmpty());
  EXPECT_EQ(run.mhz, 1250);
  EXPECT_EQ(run.celsius, 58);
  EXPECT_EQ(run.watts, 40.5);
}

TEST_F(DurationLogsTest, ATableWithOtherTitlesIsLeftOut) {
  Write("resnet_iterdur_17_c1.txt",
        "\nIteration Duration 0 0 : 9\n\nIteration Duration 1 0 : 0.5\n");
  Write("resnet_99_17_c1.csv", "a,b,c\n1,2,3\n");
  EXPECT_EQ(Read().size(), 1);
  ASSERT_EQ(told_.size(), 1);
  EXPECT_THAT(told_[0], HasSubstr("resnet_99_17_c1.csv:1: no titles with Start, Device, System"));
}

TEST_F(DurationLogsTest, OfNoLogsThereIsNothingToCompare) {
  Write("log.json", "");
  EXPECT_THAT(Read(), IsEmpty());
  ASSERT_EQ(told_.size(), 1);
  EXPECT_THAT(told_[0], HasSubstr("there is no log such as resnet_iterdur_1649888832_c1.txt"));
  EXPECT_THROW(RunVariability({{folder_.string()}, ""}, complaints_), trainer::Error);
  ReadDurationLogs({(folder_ / "log.json").string()}, complaints_);
  EXPECT_THAT(told_, testing::Contains(HasSubstr("log.json: its name is not of the form")));
}

TEST_F(DurationLogsTest, WhatIsNotThereEndsWithTheCodeForIt) {
  try {
    RunVariability({{"/nowhere", "/nowhere/resnet_iterdur_1_c.txt"}, ""}, complaints_);
    FAIL();
  } catch (const trainer::Error& error) {
    EXPECT_EQ(error.exit_code(), EX_NOINPUT);
  }
  EXPECT_THAT(told_, ElementsAre("/nowhere: cannot be read: No such file or directory",
                                 HasSubstr("/nowhere/resnet_iterdur_1_c.txt: cannot be read")));
}

TEST_F(DurationLogsTest, NamesAFolderThatCannotBeReadAndShowsTheRest) {
  for (const char* name : {"a", "b", "c"}) fs::create_directories(folder_ / name);
  const std::string text = "\nIteration Duration 0 0 : 9\n\nIteration Duration 1 0 : 0.5\n";
  Write("a/resnet_iterdur_17_c1.txt", text);
  Write("c/resnet_iterdur_17_c3.txt", text);
  const UnreadableFolder unreadable(folder_ / "b");
  if (!unreadable.works()) GTEST_SKIP() << "every folder can be read here";
  EXPECT_EQ(Read().size(), 2U);
  EXPECT_THAT(told_, ElementsAre(HasSubstr((folder_ / "b").string() + ": cannot be read")));
  EXPECT_EQ(complaints_.exit_code(), EX_NOINPUT);
}

}  // namespace
}  // namespace bench
