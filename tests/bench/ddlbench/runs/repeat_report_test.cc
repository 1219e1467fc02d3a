// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/runs/repeat_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace bench {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

RepeatOutcome MakeOutcome(std::size_t observations, double seconds) {
  RepeatOutcome outcome;
  outcome.run.suite = "fast";
  outcome.run.name = "convnet";
  outcome.run.batch_size = 64;
  outcome.run.repeat = 12;
  outcome.run.number = 5;
  outcome.run.vcd = "3";
  outcome.start = 1'795'402'643'000'123;
  outcome.observations.assign(observations, seconds);
  return outcome;
}

TEST(RepeatOutcome, HasTimesWhereAnObservationCounts) {
  EXPECT_FALSE(MakeOutcome(10, 2).times());
  ASSERT_TRUE(MakeOutcome(11, 2).times());
  EXPECT_EQ(MakeOutcome(11, 2).times()->items_avg, 160);
}

TEST(FormatObservations, HasStatisticsWhereThereAreSome) {
  EXPECT_THAT(
      FormatObservations(MakeOutcome(12, 2)),
      testing::AllOf(HasSubstr("| 10 (warm-up) | 2.0000   | 160.00    |\n"),
                     HasSubstr("| 12          | 2.0000   | 160.00    |\n"),
                     HasSubstr("| s      | 2.0000    | 0.0000    | 2.0000    | 2.0000    | 2 "
                               "    |\n")));
  EXPECT_THAT(FormatObservations(MakeOutcome(3, 2)), Not(HasSubstr("| train")));
}

TEST(FormatCopies, HasEachAndTheirSum) {
  std::vector<RepeatOutcome> copies = {MakeOutcome(12, 2), MakeOutcome(12, 4), MakeOutcome(5, 1)};
  copies[1].run.vcd = "7";
  EXPECT_EQ(FormatCopies(copies),
            "| device | s         | sd        | images/s  |\n"
            "| ------ | --------- | --------- | --------- |\n"
            "| 3      | 2.0000    | 0.0000    | 160.00    |\n"
            "| 7      | 4.0000    | 0.0000    | 80.00     |\n"
            "| all    |           |           | 240.00    |\n");
}

TEST(WriteMilaReport, NamesARunThatHasFailed) {
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / "WriteMilaReport";
  std::filesystem::remove_all(folder);
  RepeatOutcome outcome = MakeOutcome(4, 2);
  outcome.run.completed = false;
  const std::filesystem::path failed = WriteMilaReport(outcome, folder);
  EXPECT_EQ(failed, folder / "fast.convnet.R0.D3.FAIL.20261123-025723-000123.json");
  const auto report = nlohmann::json::parse(std::ifstream(failed));
  EXPECT_EQ(report["completed"], false);
  EXPECT_FALSE(report.contains("train"));
  EXPECT_FALSE(report.contains("train_item"));
  outcome = MakeOutcome(12, 2);
  const std::filesystem::path path = WriteMilaReport(outcome, folder);
  EXPECT_EQ(path, folder / "fast.convnet.R0.D3.20261123-025723-000123.json");
  EXPECT_THAT(FormatSaved(outcome, path), HasSubstr("\nSaving report to " + path.string()));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace bench
