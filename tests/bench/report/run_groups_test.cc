// SPDX-License-Identifier: Apache-2.0

#include "bench/report/run_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/command_line.h"
#include "trainer/options/options.h"

namespace bench {
namespace {

// The groups of two runs that differ in this alone; "" is an option that was not given.
std::size_t GroupsWithOther(const std::string& option, const std::string& a, const std::string& b) {
  std::vector<RunRecord> runs(2);
  for (RunRecord& run : runs) {
    run.ranks = 2;
    run.settings = {{"batch_size", "8"}, {"precision", "fp32"}};
  }
  if (!a.empty()) runs[0].settings.emplace_back(option, a);
  if (!b.empty()) runs[1].settings.emplace_back(option, b);
  return GroupsOf(runs).size();
}

// By the trainer's own table, so that an option which it gets later is not forgotten here.
TEST(GroupsOf, APlaceOfFilesMakesNoOtherGroup) {
  trainer::Options options;
  int places = 0;
  for (const trainer::OptionRow& row : trainer::OptionTable()) {
    const std::string shape = row.access.describe(row, options).shape;
    // An option that is another's name is logged by that one's.
    if (row.rank_rule == trainer::RankRule::kOtherName) continue;
    if (shape != "DIR" && shape != "FILE") continue;
    ++places;
    EXPECT_EQ(GroupsWithOther(row.name, "/scratch/1", "/scratch/2"), 1U) << row.name;
  }
  EXPECT_GT(places, 10);
}

TEST(GroupsOf, HowLongARunLastsAndWhoIsToldMakeNoOtherGroup) {
  for (const char* option :
       {"num_iter", "run_iter", "stop_at_top1", "stop_margin", "job_comment"}) {
    EXPECT_EQ(GroupsWithOther(option, "1", "2"), 1U) << option;
  }
  EXPECT_EQ(GroupsWithOther("precision_of_it", "1", "2"), 2U);
}

// Which folder it is does not matter, but a run with a cache is not like one without.
TEST(GroupsOf, ACacheOfRecordsAndTimedOpsAreOtherRuns) {
  EXPECT_EQ(GroupsWithOther("record_cache", "", "/dev/shm"), 2U);
  EXPECT_EQ(GroupsWithOther("variability_dir", "", "logs"), 2U);
  EXPECT_EQ(GroupsWithOther("plan_cache", "", "plans.txt"), 1U);
}

}  // namespace
}  // namespace bench
