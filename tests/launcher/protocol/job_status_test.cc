// SPDX-License-Identifier: Apache-2.0

#include "launcher/protocol/job_status.h"

#include "tests/support/test.h"

namespace launcher {
namespace {

using State = JobStatus::RankState;

JobStatus FakeStatus() {
  JobStatus status;
  status.job = "12_3";
  status.host = "n1";
  status.pid = 4711;
  status.launcher = "srun";
  status.restarts = 2;
  status.program = "python 'my train.py' --lr=0.1";
  status.written = 1795343400.5;
  status.started = 1795343000.25;
  status.ends = 1795346600;
  status.ranks = {{"n1", State::kRunning, 0, 0.5},
                  {"n1", State::kStarting, 0, std::nullopt},
                  {"n2", State::kEnded, 137, 12}};
  return status;
}

TEST(JobStatus, IsReadAsItWasWritten) {
  const JobStatus status = FakeStatus();
  const std::string text = FormatJobStatus(status);
  EXPECT_TRUE(text.starts_with("ddlrun-status 1\njob 12_3 n1 4711 srun 2 python%20"));
  const auto read = ParseJobStatus(text);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->job, "12_3");
  EXPECT_EQ(read->host, "n1");
  EXPECT_EQ(read->pid, 4711);
  EXPECT_EQ(read->launcher, "srun");
  EXPECT_EQ(read->restarts, 2);
  EXPECT_EQ(read->program, status.program);
  EXPECT_NEAR(read->written, status.written, 0.1);
  EXPECT_NEAR(read->started, status.started, 0.1);
  EXPECT_EQ(read->ends, status.ends);
  ASSERT_EQ(read->ranks.size(), 3U);
  EXPECT_EQ(read->ranks[0].host, "n1");
  EXPECT_EQ(read->ranks[0].state, State::kRunning);
  EXPECT_EQ(read->ranks[0].silence, 0.5);
  EXPECT_EQ(read->ranks[1].state, State::kStarting);
  EXPECT_EQ(read->ranks[1].silence, std::nullopt);
  EXPECT_EQ(read->ranks[2].state, State::kEnded);
  EXPECT_EQ(read->ranks[2].exit_code, 137);
  EXPECT_EQ(FormatJobStatus(*read), text);
}

TEST(JobStatus, WhatIsNotKnownStaysSo) {
  JobStatus status = FakeStatus();
  status.job = "";
  status.ends.reset();
  const auto read = ParseJobStatus(FormatJobStatus(status));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->job, "");
  EXPECT_EQ(read->ends, std::nullopt);
}

TEST(JobStatus, NothingElseIsOne) {
  const std::string text = FormatJobStatus(FakeStatus());
  // Cut off anywhere but behind a rank.
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string part = text.substr(0, i);
    const bool is_whole = part.ends_with("\n") && part.find("\nrank ") != std::string::npos;
    EXPECT_EQ(ParseJobStatus(part).has_value(), is_whole) << part;
  }
  EXPECT_FALSE(ParseJobStatus(text + "rank n3 asleep 0 -\n").has_value());
  EXPECT_FALSE(ParseJobStatus(text + "rank n3 running 0 nan\n").has_value());
  EXPECT_FALSE(ParseJobStatus(text + "rank n3 running 0 -1\n").has_value());
  EXPECT_TRUE(ParseJobStatus(text + "rank n3 running 0 1e15\n").has_value());
  EXPECT_FALSE(ParseJobStatus(text + "rank n3 running 0 2e15\n").has_value());
  EXPECT_FALSE(ParseJobStatus(text + "rank n3 running 0 - x\n").has_value());
  EXPECT_FALSE(ParseJobStatus("ddlrun-status 2" + text.substr(15)).has_value());
}

}  // namespace
}  // namespace launcher
