// SPDX-License-Identifier: Apache-2.0

#include "launcher/slurm/srun_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(SrunError, NamesTheFirstTask) {
  const std::optional<RankEnd> killed = ParseSrunError("srun: error: n2: task 3: Killed");
  ASSERT_TRUE(killed);
  EXPECT_EQ(killed->rank, 3);
  EXPECT_EQ(killed->host, "n2");
  EXPECT_EQ(killed->signal, 9);
  EXPECT_EQ(killed->exit_code, 137);
  const std::optional<RankEnd> exited =
      ParseSrunError("srun: error: gpu-01.site: tasks 4,6-7: Exited with exit code 2");
  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->rank, 4);
  EXPECT_EQ(exited->exit_code, 2);
  EXPECT_EQ(exited->signal, 0);
  EXPECT_EQ(ParseSrunError("srun: error: n1: task 0: Segmentation fault (core dumped)")->signal,
            11);
}

std::vector<std::pair<int, int>> TasksOf(const std::string& list) {
  std::vector<std::pair<int, int>> tasks;
  for (const RankRange& range : ParseSrunTasks("srun: error: n[1-2]: task" + list + ": Killed")) {
    tasks.emplace_back(range.first, range.last);
  }
  return tasks;
}

TEST(SrunError, NamesAllTasks) {
  EXPECT_THAT(TasksOf(" 3"), ElementsAre(Pair(3, 3)));
  EXPECT_THAT(TasksOf("s 4,6-9,12"), ElementsAre(Pair(4, 4), Pair(6, 9), Pair(12, 12)));
  EXPECT_THAT(TasksOf("s 0-1048575"), ElementsAre(Pair(0, 1048575)));
  for (const char* list : {"", " ", "s ", "s x", "s 4-", "s -4", "s 4-3", "s 4,x", "s 4 5", "s 4,4",
                           "s 5,4", "s 0-9,9", "s 0-1048576", "s 99999999999", "x 4"}) {
    EXPECT_THAT(TasksOf(list), IsEmpty()) << list;
  }
}

TEST(SrunError, MayBeLongWhereManyTasksEnd) {
  std::string line = "srun: error: n[1-4096]: tasks 0";
  for (int task = 2; task < 8000; task += 2) line += "," + std::to_string(task);
  line += ": Exited with exit code 1";
  ASSERT_TRUE(ParseSrunError(line));
  EXPECT_EQ(ParseSrunError(line)->rank, 0);
  EXPECT_EQ(ParseSrunError(line)->host, "n[1-4096]");
  EXPECT_EQ(ParseSrunTasks(line).size(), 4000U);
}

TEST(SrunError, PassesOverAnyOtherLine) {
  for (const char* text : {"", "srun: error: Node failure on n4", "srun: error: n2: task x: Killed",
                           "srun: error: n2: task 1: Vanished", "srun: n2: task 1: Killed",
                           "srun: error: n2: task 1: Exited with exit code 256"}) {
    EXPECT_FALSE(ParseSrunError(text)) << text;
  }
}

TEST(Cancelled, IsReadWithItsReason) {
  EXPECT_EQ(ParseCancelled("srun: Job step aborted: Waiting up to 32 seconds for job step to "
                           "finish."),
            "");
  EXPECT_EQ(
      ParseCancelled("slurmstepd: error: *** STEP 4.0 ON n1 CANCELLED AT 2026-11-22T12:13:22 ***"),
      "");
  EXPECT_EQ(ParseCancelled("0: slurmstepd: error: *** STEP 4.0 ON n1 CANCELLED AT "
                           "2026-11-22T12:13:22 DUE TO TIME LIMIT ***"),
            " DUE TO TIME LIMIT");
  for (const char* text :
       {"", "*** STEP 4.0 ON n1 CANCELLED AT 2026-11-22T12:13:22 ***",
        "slurmstepd: error: *** STEP 4.0 ON n1 CANCELLED AT 2026-11-22T12:13:22",
        "slurmstepd: error: *** STEP 4.0 STEPD TERMINATED ON n1 AT 2026-11-22T12:13:22 ***"}) {
    EXPECT_FALSE(ParseCancelled(text)) << text;
  }
}

// Whatever a rank prints: pieces that overlap, are missing, or come in another order.
TEST(Cancelled, NeedsAllItsPiecesOneAfterTheOther) {
  EXPECT_EQ(ParseCancelled("slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT  ***"), "");
  EXPECT_EQ(ParseCancelled("slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT t ***"), "");
  for (const char* text : {"slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT ***",
                           "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT***",
                           "slurmstepd: error: *** STEP CANCELLED AT t ***",
                           "slurmstepd: error: *** STEP CANCELLED AT ***",
                           " CANCELLED AT t: error: *** STEP 7.0 ON n1 ***", ": error: *** STEP ",
                           " CANCELLED AT ", " ***", "***"}) {
    EXPECT_FALSE(ParseCancelled(text)) << text;
  }
}

TEST(LostNode, IsNamedBySrun) {
  EXPECT_EQ(ParseLostNode("srun: error: Node failure on n2"), "n2");
  EXPECT_EQ(ParseLostNode("srun: error: Task launch for StepId=4.0 failed on node gpu-a08: "
                          "Communication connection failure"),
            "gpu-a08");
  for (const char* line :
       {"Node failure on n2", "srun: error: Node failure on ", "srun: error: Node failure on n2 n3",
        "srun: error: Task launch for StepId=4.0 failed on node n2: Invalid job "
        "credential",
        // Pieces that overlap, or of which one is missing.
        "srun: error: Task launch for failed on node n2: Communication connection failure",
        "srun: error: Task launch for StepId=4.0 failed on node : Communication connection failure",
        "srun: error: Task launch for : Communication connection failure",
        "srun: error: Task launch for StepId=4.0 failed on node: Communication connection failure",
        "srun: error: Task launch for StepId=4.0 failed on node n 2: Communication connection "
        "failure"}) {
    EXPECT_FALSE(ParseLostNode(line)) << line;
  }
}

TEST(StepCreation, IsWaitedForOrGranted) {
  EXPECT_EQ(ParseStepCreation("srun: Job 7 step creation temporarily disabled, retrying (Requested "
                              "nodes are busy)"),
            StepCreation::kWaiting);
  EXPECT_EQ(ParseStepCreation("srun: Step created for StepId=7.1"), StepCreation::kGranted);
  EXPECT_EQ(ParseStepCreation("srun: Job step created"), std::nullopt);
  EXPECT_EQ(ParseStepCreation("step creation temporarily disabled"), std::nullopt);
}

}  // namespace
}  // namespace launcher
