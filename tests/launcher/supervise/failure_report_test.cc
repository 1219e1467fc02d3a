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
            "ddlrun: [ERROR DDL-20-1] the job failed: rank 3 on gpu025 (pid 4711) ended first, "
            "with signal 11 (Segmentation fault), 1.2 s after the start\n");
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
