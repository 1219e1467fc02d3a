// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/failure_report.h"

#include <gtest/gtest.h>

#include "tests/support/test.h"

namespace launcher {
namespace {

RankExit Exited(int rank, int exit_code) {
  RankExit end;
  end.rank = rank;
  end.exit_code = exit_code;
  return end;
}

RankExit Killed(int rank) {
  RankExit end = Exited(rank, 137);
  end.signal = 9;
  return end;
}

TEST(ExitCodeCounts, AFewEndsAreShownAndNotCounted) {
  ExitCodeCounts counts;
  EXPECT_EQ(counts.Text(), "");
  for (int rank = 0; rank < ExitCodeCounts::kShownLines; ++rank)
    EXPECT_TRUE(counts.Add(Killed(rank)));
  EXPECT_EQ(counts.Text(), "");
}

TEST(ExitCodeCounts, OfAllRanksAtOnceTheFirstAreShownAndAllAreCounted) {
  ExitCodeCounts counts;
  int shown = 0;
  for (int rank = 32767; rank >= 0; --rank) {
    if (counts.Add(rank == 5 ? Exited(rank, 3) : Killed(rank))) ++shown;
  }
  EXPECT_EQ(shown, 8);
  EXPECT_EQ(counts.Text(),
            "32768 ranks ended: 32767 with signal 9 (Killed), 1 with exit code 3; 8 lines about "
            "them are above, 32760 were left out");
}

TEST(ExitCodeCounts, ARankThatBothTheShimAndSrunTellOfCountsOnce) {
  ExitCodeCounts counts;
  for (int rank = 0; rank < 10; ++rank) counts.Add(Exited(rank, 1));
  counts.Add(Exited(0, 1), {{0, 9}});
  counts.Add(Killed(8), {{8, 8}, {20, 21}});
  EXPECT_EQ(counts.Text(),
            "12 ranks ended: 10 with exit code 1, 2 with signal 9 (Killed); 8 lines about them are "
            "above, 4 were left out");
}

TEST(ExitCodeCounts, OfManyWaysToEndTheMostFrequentAreTold) {
  ExitCodeCounts counts;
  int rank = 0;
  for (int code = 1; code <= 9; ++code) {
    for (int i = 0; i < code; ++i) counts.Add(Exited(rank++, code));
  }
  EXPECT_EQ(counts.Text(),
            "45 ranks ended: 9 with exit code 9, 8 with exit code 8, 7 with exit code 7, 6 with "
            "exit code 6, 5 with exit code 5, 4 with exit code 4, 6 otherwise; 8 lines about them "
            "are above, 37 were left out");
}

TEST(Tail, KeepsTheLastLinesShort) {
  Tail tail;
  tail.Add("");
  for (int i = 0; i < 15; ++i) tail.Add(std::to_string(i));
  tail.Add(std::string(1000, 'x'));
  EXPECT_EQ(tail.lines().size(), std::size_t{kReportedLines});
  EXPECT_EQ(tail.lines().front(), "6");
  EXPECT_EQ(tail.lines().back().size(), kReportedLineBytes);
}

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
            "ddlrun: [ERROR DDL-20-1] the job failed: rank 3 on gpu025 (pid 4711) ended first, "
            "with signal 11 (Segmentation fault), 1.2 s after the start\n");
}

TEST(FailureReport, SaysAtItsEndThatTheKernelHasKilledForMemory) {
  RankFailure failure;
  failure.rank = 1;
  failure.host = "n1";
  failure.signal = 9;
  failure.exit_code = 137;
  failure.seconds = 2;
  failure.last_lines = {"loading", "the kernel killed 1 process for memory: ask for more"};
  EXPECT_EQ(FailureReport(failure),
            "ddlrun: last lines of rank 1:\n"
            "ddlrun:   | loading\n"
            "ddlrun: [ERROR DDL-20-1] the job failed: rank 1 on n1 ended first, with signal 9 "
            "(Killed), 2.0 s after the start; the kernel killed 1 process for memory: ask for "
            "more\n");
  failure.last_lines = {"the kernel killed 2 processes for memory"};
  EXPECT_EQ(FailureReport(failure),
            "ddlrun: [ERROR DDL-20-1] the job failed: rank 1 on n1 ended first, with signal 9 "
            "(Killed), 2.0 s after the start; the kernel killed 2 processes for memory\n");
}

TEST(FailureReport, SaysWhereSlurmMayBeTheCause) {
  RankFailure failure;
  failure.rank = 3;
  failure.host = "n2";
  failure.signal = 9;
  failure.exit_code = 137;
  failure.may_be_of_cancel = true;
  EXPECT_EQ(FailureReport(failure),
            "ddlrun: [ERROR DDL-20-1] the job failed: rank 3 on n2 ended first, with signal 9 "
            "(Killed), 0.0 s after the start, as Slurm cancelled the step: whoever did that may "
            "have ended the rank as well\n");
}

TEST(ErrorLine, IsTheLastThatSpeaksOfAnError) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{}, ""},
      {{"loading", "done"}, ""},
      {{"Traceback:", "  raise ValueError('x')", "ValueError: x"}, "ValueError: x"},
      {{"ValueError: x", "[W1 a.cpp] Warning: error in shutdown", "bye"}, "ValueError: x"},
      {{"  RuntimeError: CUDA out of memory\x1b"}, "RuntimeError: CUDA out of memory\\x1b"},
      {{"a: No such file or directory", "step 7"}, "a: No such file or directory"},
      {{"FATAL: " + std::string(300, 'x')}, "FATAL: " + std::string(193, 'x') + "..."},
  };
  for (const auto& [lines, line] : cases) {
    Tail tail;
    for (const std::string& each : lines) tail.Add(each);
    EXPECT_EQ(ErrorLineOf(tail), line);
  }
  RankFailure failure;
  failure.rank = 3;
  failure.host = "n1";
  failure.exit_code = 1;
  failure.error_line = "ValueError: x";
  EXPECT_THAT(FailureReport(failure),
              HasSubstr("0.0 s after the start; its error: ValueError: x\n"));
}

TEST(FailureReport, CountsTheOthersBeforeTheCause) {
  RankFailure failure;
  failure.rank = 3;
  failure.host = "n1";
  failure.exit_code = 1;
  failure.last_lines = {"loading"};
  failure.others = "9 ranks ended";
  EXPECT_EQ(FailureReport(failure),
            "ddlrun: last lines of rank 3:\n"
            "ddlrun:   | loading\n"
            "ddlrun: 9 ranks ended\n"
            "ddlrun: [ERROR DDL-20-1] the job failed: rank 3 on n1 ended first, with exit code 1, "
            "0.0 s after the start\n");
}

}  // namespace

}  // namespace launcher
