// SPDX-License-Identifier: Apache-2.0

#include "launcher/protocol/rank_exit.h"

#include <sys/wait.h>

#include <csignal>

#include "launcher/protocol/job_status.h"
#include "launcher/protocol/rank_event.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

constexpr timespec kWhen = {1795349602, 801'234'567};

// What is behind "ddlrun-rank[key]: ".
std::string ReportIn(const std::string& line) {
  const auto found = FindEvent(line, EventHead("key"));
  return found ? std::string(found->report) : "no report";
}

TEST(RankExit, ASignalIsReadAsItWasWritten) {
  const std::string line = EmitRankExit("key", 1, "n2.cluster", 77, SIGKILL, kWhen).text;
  EXPECT_EQ(line,
            "ddlrun-rank[key]: rank 1 on n2.cluster (pid 77) ended with signal 9 (Killed) at "
            "2026-11-22T12:13:22.801234Z\n");
  const std::optional<RankExit> read = ParseRankExit(ReportIn(line));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->rank, 1);
  EXPECT_EQ(read->host, "n2.cluster");
  EXPECT_EQ(read->pid, 77);
  EXPECT_EQ(read->signal, 9);
  EXPECT_EQ(read->exit_code, 137);
  EXPECT_NEAR(read->time, 1795349602.801234, 1e-6);
}

TEST(RankEnergy, IsReadAsItWasWritten) {
  const std::string line = EmitEnergy("key", 12, 5400000123).text;
  EXPECT_EQ(line, "ddlrun-rank[key]: rank 12 has measured 5400000123 mJ\n");
  const std::optional<RankEnergy> read = ParseEnergy("rank 12 has measured 5400000123 mJ");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->rank, 12);
  EXPECT_DOUBLE_EQ(read->joules, 5400000.123);
  for (const char* wrong :
       {"rank 12 has measured 0 mJ", "rank 12 has measured -1 mJ", "rank 12 has measured mJ",
        "rank 12 has measured 5 J", "rank 12 has measured 5", "rank has measured 5 mJ",
        "rank 12 has measured 5x mJ", "rank 12 measured 5 mJ", "rank 12 has measured  mJ",
        "rank 12 has measured 99999999999999999999 mJ", "rank 12 has measured 5 mJ more"}) {
    EXPECT_FALSE(ParseEnergy(wrong)) << wrong;
  }
}

TEST(RankEvent, IsWhatFollowsTheHeadWithTheKey) {
  EXPECT_EQ(EventHead("0123456789abcdef"), "ddlrun-rank[0123456789abcdef]: ");
  EXPECT_EQ(EventHead(""), "");
  const auto found = FindEvent("some text ddlrun-rank[key]: rank 1 has started", EventHead("key"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->before, "some text ");
  EXPECT_EQ(found->report, "rank 1 has started");
  EXPECT_FALSE(FindEvent("ddlrun-rank[yek]: rank 1 has started", EventHead("key")));
  EXPECT_FALSE(FindEvent("ddlrun-rank: rank 1 has started", EventHead("key")));
  EXPECT_FALSE(FindEvent("rank 1 has started", EventHead("")));
  EXPECT_EQ(ShownReport("rank 1 | x"), "ddlrun-rank: rank 1 | x");
}

TEST(Label, IsWhatSrunAndMpirunPutInFrontOfALine) {
  for (const char* label :
       {"", "0: ", "  12: ", "[1,12]<stderr>:", "[prterun-n1-77@1,12]<stderr>: ",
        "Mon Nov 23 02:31:30 2026<stderr>:", "Mon Nov 23 02:31:30 2026[1,0]<stderr>:"}) {
    EXPECT_TRUE(IsLabel(label)) << label;
  }
  EXPECT_TRUE(IsLabel("[12] "));
  for (const char* text : {"[] ", "[a] ", "[1]", "[1] [2] "}) EXPECT_FALSE(IsLabel(text)) << text;
  for (const char* text : {" ", "0:", "0:  ", ": ", "a: ", "1 2: ", "3: a", "[1,12]", "[",
                           "[1,12]<stderr>:a", "[1,0]<stderr>:text[1,12]<stderr>:"}) {
    EXPECT_FALSE(IsLabel(text)) << text;
  }
}

TEST(RankExit, TheTimeMayBeMissingOrSpoilt) {
  for (const char* when : {"", " at", " at noon", " at 2026-11-22", " at 2026-11-22 12:13:22Z"}) {
    const auto read =
        ParseRankExit(std::string("rank 1 on n2 (pid 7) ended with exit code 3") + when);
    ASSERT_TRUE(read) << when;
    EXPECT_EQ(read->exit_code, 3);
    EXPECT_EQ(read->time, 0) << when;
  }
}

TEST(RankExit, AnExitCodeIsReadBehindMpirunsTag) {
  const std::optional<RankExit> read =
      ParseRankExit(ReportIn(std::string("[1,12]<stderr>:") +
                             EmitRankExit("key", 12, "n1", 5, W_EXITCODE(3, 0), kWhen).text));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->rank, 12);
  EXPECT_EQ(read->signal, 0);
  EXPECT_EQ(read->exit_code, 3);
}

TEST(RankExit, OtherLinesAreNone) {
  for (const std::string& line :
       {std::string(), std::string("rank 1 on n2: cannot start 'x'"),
        std::string("rank -1 on n2 (pid 7) ended with exit code 3"),
        std::string("rank 1 on n2 (pid 7) ended with exit code 0"),
        std::string("rank 1 on n2 (pid 7) ended with exit code 256"),
        std::string("rank 1 on n2 (pid 7) ended with signal 128"),
        std::string("rank 1 on n2 (pid 7) ended with joy"),
        "rank 1 on " + std::string(1000, 'x') + " (pid 7) ended with exit code 3"}) {
    EXPECT_FALSE(ParseRankExit(line)) << line;
  }
}

TEST(RankLine, IsReadAsItWasWritten) {
  const std::optional<RankLine> line = ParseRankLine("rank 12 | loss | is nan");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->rank, 12);
  EXPECT_EQ(line->text, "loss | is nan");
  EXPECT_EQ(std::string(EmitRankLine("key", line->rank, line->text.c_str()).text),
            "ddlrun-rank[key]: rank 12 | loss | is nan\n");
}

TEST(RankLine, PassesOverAnyOtherLine) {
  for (const char* text : {"", "loss 3", "rank | x", "rank 99999999 | x",
                           "rank 1 on n2 (pid 77) ended with exit code 3"}) {
    EXPECT_FALSE(ParseRankLine(text)) << text;
  }
}

TEST(RankStart, IsReadAsItWasWritten) {
  EXPECT_EQ(std::string(EmitRankStart("key", 12).text), "ddlrun-rank[key]: rank 12 has started\n");
  EXPECT_EQ(ParseRankStart("rank 12 has started"), 12);
  for (const char* text :
       {"", "rank has started", "rank 1 has started?", "rank 99999999 has started"}) {
    EXPECT_FALSE(ParseRankStart(text)) << text;
  }
}

TEST(RankSuccess, IsReadAsItWasWritten) {
  EXPECT_EQ(std::string(EmitRankSuccess("key", 12).text), "ddlrun-rank[key]: rank 12 has ended\n");
  EXPECT_EQ(ParseRankSuccess("rank 12 has ended"), 12);
  for (const char* text : {"", "rank has ended", "rank 1 has ended?", "rank 1 has started"}) {
    EXPECT_FALSE(ParseRankSuccess(text)) << text;
  }
}

TEST(RankStopped, IsReadAsItWasWritten) {
  const std::string text = EmitRankStopped("key", 12, "n2", 77).text;
  EXPECT_TRUE(text.starts_with("ddlrun-rank[key]: rank 12 on n2 (pid 77) is stopped: by SIGSTOP"));
  EXPECT_TRUE(text.find("kill -CONT 77 ") != std::string::npos);
  EXPECT_TRUE(IsRankStopped(text.substr(text.find(": ") + 2)));
  for (const char* other : {"rank 12 on n2 is stopped: x", "rank 12 (pid 77) is stopped: x", "",
                            "rank on n2 (pid 77) is stopped: x", "rank 12 on n2 (pid 77) ended"}) {
    EXPECT_FALSE(IsRankStopped(other)) << other;
  }
}

TEST(RankGone, IsReadAsItWasWritten) {
  EXPECT_EQ(std::string(EmitRankGone("key", 12, 143).text),
            "ddlrun-rank[key]: rank 12 is gone, 143\n");
  const auto gone = ParseRankGone("rank 12 is gone, 143");
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->rank, 12);
  EXPECT_EQ(gone->exit_code, 143);
  for (const char* text :
       {"", "rank 12 is gone", "rank 12 is gone, ", "rank 12 is gone, 0", "rank 12 is gone, 143 ",
        "rank 12 is gone, 4000000000", "rank is gone, 1", "rank 12 has ended"}) {
    EXPECT_FALSE(ParseRankGone(text)) << text;
  }
}

TEST(ProcessLeft, IsReadAsItWasWritten) {
  const std::string line = EmitLeftProcess("key", 1, "n2", 77, "python (3)").text;
  EXPECT_EQ(line,
            "ddlrun-rank[key]: rank 1 on n2 has left process 77 (python (3)), which SIGKILL does "
            "not end\n");
  EXPECT_TRUE(IsProcessLeft(ReportIn(line).substr(0, ReportIn(line).find('\n'))));
  for (const char* text : {"", "rank 1 on n2 (pid 7) is stopped: ", "on n2 has left process 77",
                           "rank 1 has left process 77"}) {
    EXPECT_FALSE(IsProcessLeft(text)) << text;
  }
}

TEST(KilledAlone, IsReadAsItWasWritten) {
  EXPECT_EQ(std::string(EmitKilledAlone("key", 12).text),
            "ddlrun-rank[key]: rank 12 was killed alone\n");
  EXPECT_EQ(ParseKilledAlone("rank 12 was killed alone"), 12);
  for (const char* text :
       {"", "rank was killed alone", "rank 1 was killed", "rank 1 has started"}) {
    EXPECT_FALSE(ParseKilledAlone(text)) << text;
  }
}

TEST(RankAttachment, IsReadAsItWasWritten) {
  for (const bool is_attached : {true, false}) {
    const std::string line = EmitAttachment("key", 3, is_attached).text;
    const std::string_view without_end = std::string_view(line).substr(0, line.size() - 1);
    const auto event = FindEvent(without_end, EventHead("key"));
    ASSERT_TRUE(event);
    const auto change = ParseAttachment(event->report);
    ASSERT_TRUE(change);
    EXPECT_EQ(change->rank, 3);
    EXPECT_EQ(change->is_attached, is_attached);
  }
  for (const char* other :
       {"", "rank 3", "rank 3 is", "rank 3 is attached to", "rank is attached"}) {
    EXPECT_FALSE(ParseAttachment(other)) << other;
  }
}

TEST(OutputFrame, IsReadAsItWasWritten) {
  const std::pair<FrameEnd, std::string> ends[] = {
      {kFrameOfLine, "\n"}, {kFrameOfReturn, "\r"}, {kFrameOfBeginning, ""}};
  for (const auto& [end, text] : ends) {
    const std::string line = EmitFrameHead("key", 12, end).text + std::string("a:b c");
    const auto event = FindEvent(line, EventHead("key"));
    ASSERT_TRUE(event);
    const auto frame = ParseOutputFrame(event->report);
    ASSERT_TRUE(frame);
    EXPECT_EQ(frame->rank, 12);
    EXPECT_EQ(frame->text, "a:b c");
    EXPECT_EQ(frame->end, text);
  }
  EXPECT_EQ(ParseOutputFrame("out:0:n:")->text, "");
  for (const char* other : {"", "out:", "out:1", "out:1:n", "out:1:x:a", "out:x:n:a", "out:-1:n:a",
                            "out::n:a", "out:12345678:n:a", "output: a", "rank 1 has started"}) {
    EXPECT_FALSE(ParseOutputFrame(other)) << other;
  }
}

TEST(Step, IsReadAsItWasWritten) {
  EXPECT_EQ(std::string(EmitStep("key", "123", "4").text), "ddlrun-rank[key]: step 123.4\n");
  EXPECT_EQ(ParseStep("step 123.4"), "123.4");
}

TEST(Step, PassesOverAnyOtherLine) {
  for (const char* text :
       {"", "1.2", "a step 1.2", "step 12", "step 1.2;reboot", "step .2", "step 1."}) {
    EXPECT_FALSE(ParseStep(text)) << text;
  }
}

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
  EXPECT_TRUE(text.starts_with("ddlrun-status 2\njob 12_3 n1 4711 srun 2 python%20"));
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

TEST(JobStatus, HasTheCostWhereThatIsKnown) {
  JobStatus status = FakeStatus();
  RunCost& cost = status.cost.emplace();
  cost = {.source = ProgressSource::kHeartbeat,
          .restarts = 3,
          .wall = 100.5,
          .unsaved = 0.25,
          .energy = 4464000.5,
          .lost_energy = 12.5,
          .lacks_energy = true};
  double number = 0;
  for (const CostPart& part : CostParts()) cost.*part.seconds = ++number;
  const std::string text = FormatJobStatus(status);
  const auto read = ParseJobStatus(text);
  ASSERT_TRUE(read && read->cost);
  EXPECT_EQ(FormatJobStatus(*read), text);
  EXPECT_EQ(read->cost->source, ProgressSource::kHeartbeat);
  EXPECT_EQ(read->cost->restarts, 3);
  EXPECT_EQ(read->cost->wall, 100.5);
  EXPECT_NEAR(read->cost->unsaved, 0.25, 0.1);
  for (const CostPart& part : CostParts())
    EXPECT_EQ((*read->cost).*part.seconds, cost.*part.seconds);
  EXPECT_EQ(read->cost->energy, 4464000.5);
  EXPECT_EQ(read->cost->lost_energy, 12.5);
  EXPECT_TRUE(read->cost->lacks_energy);
  cost.energy.reset();
  cost.lacks_energy = false;
  const auto without = ParseJobStatus(FormatJobStatus(status));
  ASSERT_TRUE(without && without->cost);
  EXPECT_FALSE(without->cost->energy);
  EXPECT_FALSE(without->cost->lacks_energy);
  const std::size_t line = text.find("cost heartbeat");
  for (const char* wrong : {"cost steps", "cost none x", "cost heartbeat 1 2 3", "cost"}) {
    EXPECT_FALSE(ParseJobStatus(text.substr(0, line) + wrong + text.substr(text.find("\nrank"))));
  }
  // Version 1 has none.
  const std::string old = FormatJobStatus(FakeStatus());
  EXPECT_TRUE(ParseJobStatus("ddlrun-status 1" + old.substr(15)));
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
  EXPECT_FALSE(ParseJobStatus("ddlrun-status 3" + text.substr(15)).has_value());
}

}  // namespace
}  // namespace launcher
