// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/failure_report.h"

#include <gtest/gtest.h>

namespace launcher {
namespace {

TEST(FailureReport, NamesTheRankLast) {
  RankFailure failure;
  failure.rank = 3;
  failure.host = "gpu025";
  failure.pid = 4711;
  failure.signal = 11;
  failure.exit_code = 139;
  failure.seconds = 1.25;
  failure.last_lines = {"loading", "CUDA error"};
  EXPECT_EQ(FailureReport(failure),
            "ddlrun: last lines of rank 3:\n"
            "ddlrun:   | loading\n"
            "ddlrun:   | CUDA error\n"
            "ddlrun: the job failed: rank 3 on gpu025 (pid 4711) ended first, with signal 11 "
            "(Segmentation fault), 1.2 s after the start\n");
}

TEST(FailureReport, LeavesOutWhatIsNotKnown) {
  RankFailure failure;
  failure.rank = 0;
  failure.exit_code = 3;
  EXPECT_EQ(FailureReport(failure),
            "ddlrun: the job failed: rank 0 ended first, with exit code 3\n");
}

TEST(MpirunMessages, FindsARankThatASignalEnded) {
  MpirunMessages messages;
  messages.AddLine("some output");
  messages.AddLine(
      "mpirun noticed that process rank 1 with PID 77 on node n2 exited on signal 9 (Killed).");
  messages.AddLine(
      "mpirun noticed that process rank 0 with PID 0 on node n1 exited on signal 15 (Terminated).");
  ASSERT_TRUE(messages.failure());
  EXPECT_EQ(messages.failure()->rank, 1);
  EXPECT_EQ(messages.failure()->host, "n2");
  EXPECT_EQ(messages.failure()->pid, 77);
  EXPECT_EQ(messages.failure()->signal, 9);
  EXPECT_EQ(messages.failure()->exit_code, 137);
}

TEST(MpirunMessages, FindsARankThatExitedInTheWordsOfOpenMpi4And5) {
  for (const char* name :
       {"  Process name: [[40505,1],12]", "   Process name: [prterun-n1-77@1,12]"}) {
    MpirunMessages messages;
    messages.AddLine("  Exit code:    9");  // belongs to no rank
    messages.AddLine(name);
    messages.AddLine("  Exit code:    3");
    ASSERT_TRUE(messages.failure()) << name;
    EXPECT_EQ(messages.failure()->rank, 12);
    EXPECT_EQ(messages.failure()->exit_code, 3);
  }
}

TEST(MpirunMessages, FindsNothingInOrdinaryOutput) {
  MpirunMessages messages;
  messages.AddLine("Exit code: many");
  messages.AddLine(std::string(100000, 'x'));
  EXPECT_FALSE(messages.failure());
}

}  // namespace
}  // namespace launcher
