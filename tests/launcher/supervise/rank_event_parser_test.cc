// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/rank_event_parser.h"

#include "launcher/protocol/rank_event.h"
#include "launcher/supervise/job_result.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

using Event = RankEventParser::Event;

constexpr char kCancelled[] =
    "slurmstepd: error: *** STEP 4.0 ON n1 CANCELLED AT 2026-11-22T12:13:22 ***";
constexpr char kTimeLimit[] =
    "slurmstepd: error: *** STEP 4.0 ON n1 CANCELLED AT 2026-11-22T12:13:22 DUE TO TIME LIMIT ***";
constexpr char kTerminated[] = "srun: error: n2: task 1: Terminated";
constexpr char kKilled[] = "srun: error: n2: task 1: Killed";
constexpr char kFailed[] = "ddlrun-rank[key]: rank 1 on n2 (pid 7) ended with exit code 3";
constexpr char kTerminatedByOthers[] =
    "ddlrun-rank[key]: rank 1 on n2 (pid 7) ended with signal 15 (Terminated)";

constexpr char kKilledByOthers[] =
    "ddlrun-rank[key]: rank 1 on n2 (pid 7) ended with signal 9 (Killed)";
constexpr char kKilledAlone[] = "ddlrun-rank[key]: rank 1 was killed alone";
constexpr char kAborted[] =
    "srun: Job step aborted: Waiting up to 7 seconds for job step to finish.";

RankEventParser After(const std::vector<std::string>& lines) {
  RankEventParser reports("key");
  for (const std::string& line : lines) reports.Read(line, 1);
  return reports;
}

TEST(RankEventParser, AddsUpTheEnergyOfNodes) {
  const RankEventParser reports =
      After({"ddlrun-rank[key]: rank 0 has measured 7500 mJ",
             "[1,4]<stderr>:ddlrun-rank[key]: rank 4 has measured 500 mJ",
             "ddlrun-rank[key]: rank 0 has measured 7500 mJ",  // mpirun may say it twice
             "ddlrun-rank[other]: rank 8 has measured 1000 mJ", "rank 9 has measured 1000 mJ"});
  JobResult result;
  AddEvents(reports, TraitsOf("mpirun"), {}, /*have_responded=*/false, &result);
  EXPECT_EQ(result.joules, 8);
  EXPECT_EQ(result.measured_nodes, 2);
}

TEST(RankEventParser, KeepsTheLinesOfShimsToItself) {
  RankEventParser reports("key");
  for (const char* line : {"ddlrun-rank[key]: step 12.3", "ddlrun-rank[key]: rank 1 | last words",
                           "ddlrun-rank[key]: rank 4 has measured 7500 mJ"}) {
    const auto reading = reports.Read(line, 1);
    EXPECT_EQ(reading.instead, "") << line;
    EXPECT_EQ(reading.event, Event::kNone) << line;
  }
  auto reading = reports.Read("ddlrun-rank[key]: rank 1 on n2 (pid 7) ended with exit code 75", 1);
  EXPECT_EQ(reading.instead, "");
  EXPECT_EQ(reading.event, Event::kEnd);
  reading = reports.Read(kFailed, 1);
  EXPECT_EQ(reading.instead, "ddlrun-rank: rank 1 on n2 (pid 7) ended with exit code 3\n");
  EXPECT_EQ(reading.event, Event::kFailure);
  reading = reports.Read(kKilled, 1);
  EXPECT_EQ(reading.instead, std::nullopt);
  EXPECT_EQ(reading.event, Event::kFailure);
  EXPECT_EQ(reports.Read("a line of the user's", 1).instead, std::nullopt);
  EXPECT_EQ(reports.step(), "12.3");
  EXPECT_THAT(reports.failure()->last_lines, ElementsAre("last words"));
}

TEST(RankEventParser, KnowsWhichRanksAreGoneWithAllThatTheyHadStarted) {
  RankEventParser reports("key");
  EXPECT_EQ(reports.Read("ddlrun-rank[key]: rank 2 has ended", 1).event, Event::kEnd);
  EXPECT_EQ(reports.exit_code_of_gone(), 0);
  const auto reading = reports.Read("ddlrun-rank[key]: rank 0 is gone, 143", 1);
  EXPECT_EQ(reading.instead, "");
  EXPECT_EQ(reading.event, Event::kGone);
  reports.Read("ddlrun-rank[key]: rank 1 is gone, 3", 1);
  EXPECT_THAT(reports.gone(), ElementsAre(0, 1, 2));
  EXPECT_EQ(reports.exit_code_of_gone(), 143);
  EXPECT_THAT(reports.ended(), ElementsAre(2));
  EXPECT_FALSE(reports.failure());
}

TEST(RankEventParser, ShowsTheUserWhatCannotBeEnded) {
  const auto reading = RankEventParser("key").Read(
      "ddlrun-rank[key]: rank 1 on n2 has left process 77 (sleep), which SIGKILL does not end", 1);
  EXPECT_EQ(reading.instead,
            "ddlrun-rank: rank 1 on n2 has left process 77 (sleep), which SIGKILL does not end\n");
  EXPECT_EQ(reading.event, Event::kNone);
}

TEST(RankEventParser, TakesNothingForAReportThatLacksTheKey) {
  RankEventParser reports("key");
  for (const std::string head : {"ddlrun-rank: ", "ddlrun-rank[]: ", "ddlrun-rank[KEY]: "}) {
    for (const char* text : {"step 12.3", "rank 1 | last words", "rank 1 has started",
                             "rank 1 on n2 (pid 7) ended with exit code 3"}) {
      const auto reading = reports.Read(head + text, 1);
      EXPECT_EQ(reading.instead, std::nullopt) << head << text;
      EXPECT_EQ(reading.event, Event::kNone) << head << text;
    }
  }
  EXPECT_EQ(reports.step(), "");
  EXPECT_THAT(reports.started(), IsEmpty());
  EXPECT_FALSE(reports.failure());
  // Without shims there are no reports.
  EXPECT_EQ(RankEventParser("").Read("ddlrun-rank[]: rank 1 has started", 1).event, Event::kNone);
}

TEST(RankEventParser, LeavesTheUserWhatStandsInFrontOfAReport) {
  RankEventParser reports("key");
  const auto shown = [&](const std::string& line) { return reports.Read(line, 1).instead; };
  EXPECT_EQ(shown("50 %ddlrun-rank[key]: rank 1 has started"), "50 %\n");
  EXPECT_THAT(reports.started(), ElementsAre(1));
  EXPECT_EQ(shown("no end" + std::string(kFailed)),
            "no end\nddlrun-rank: rank 1 on n2 (pid 7) ended with exit code 3\n");
  // What srun and mpirun put there goes with the report.
  EXPECT_EQ(shown(" 3: ddlrun-rank[key]: rank 3 has started"), "");
  EXPECT_EQ(shown("[1,12]<stderr>:ddlrun-rank[key]: rank 12 has started"), "");
  EXPECT_EQ(shown("1: " + std::string(kFailed)),
            "1: ddlrun-rank: rank 1 on n2 (pid 7) ended with exit code 3\n");
  EXPECT_EQ(shown("3: 50 %ddlrun-rank[key]: rank 3 has started"), "3: 50 %\n");
}

// Each line that means something by itself, and nothing once the shim has marked it as its
// program's.
TEST(RankEventParser, TakesNothingThatAProgramPrintsForALineOfItsLauncher) {
  for (const std::string line :
       {kCancelled, kTimeLimit, kKilled, kAborted, "srun: error: Node failure on n2",
        "srun: error: Task launch for StepId=4.0 failed on node n2: Communication connection "
        "failure",
        "srun: error: n1: task 0: Exited with exit code 3",
        "srun: error: Timed out waiting for job step to complete",
        "srun: Job 7 step creation temporarily disabled, retrying (Requested nodes are busy)",
        "srun: Step created for StepId=7.1", "  Remote daemon: [prterun-n1-321@0,1] on node n3",
        "mpirun noticed that process rank 2 with PID 77 on node n2 exited on signal 9 (Killed).",
        "prterun noticed that process rank 2 with PID 77 on node n2 exited on signal 9 (Killed).",
        "srun returned non-zero exit status (9) from launching",
        "ddlrun-rank: [ERROR DDL-20-78] rank 2 runs on n3"}) {
    const auto means_something = [](const RankEventParser& reports, Event event) {
      return event != Event::kNone || reports.failure() || reports.cancelled() ||
             !reports.lost_nodes().empty() || reports.has_left_step() ||
             !reports.rejection().empty() || reports.has_lost_daemons();
    };
    RankEventParser own("key");
    const Event event = own.Read(line, 1).event;
    EXPECT_TRUE(means_something(own, event)) << line;
    for (std::size_t size = 1; size <= line.size(); ++size) {
      ASSERT_TRUE(MayBeLineOfLauncher(line.data(), size)) << line.substr(0, size);
    }
    for (const std::string label : {"", " 3: ", "unfinished "}) {
      RankEventParser reports("key");
      const auto reading = reports.Read(label + EmitOutputMark("key").text + line, 1);
      EXPECT_EQ(reading.instead, label + line + "\n");
      EXPECT_FALSE(means_something(reports, reading.event)) << line;
      EXPECT_THAT(reports.other_lines().lines(), ElementsAre(label + line));
    }
  }
}

TEST(RankEventParser, FindsTheReportBehindMarkedOutput) {
  RankEventParser reports("key");
  const std::string mark = EmitOutputMark("key").text;
  EXPECT_EQ(reports.Read(mark + "s" + mark + "srun: " + kFailed, 1).instead,
            "ssrun: \nddlrun-rank: rank 1 on n2 (pid 7) ended with exit code 3\n");
  EXPECT_EQ(reports.failure()->rank, 1);
  // Marks of another start are text.
  EXPECT_EQ(reports.Read(std::string(EmitOutputMark("other").text) + "srun: ", 1).instead,
            std::nullopt);
}

TEST(RankEventParser, KnowsAStepThatSlurmEndedFromOneThatARankEnded) {
  EXPECT_EQ(After({}).cancelled(), std::nullopt);
  EXPECT_EQ(After({kCancelled}).cancelled(), "");
  EXPECT_EQ(After({kTimeLimit}).cancelled(), " DUE TO TIME LIMIT");
  EXPECT_EQ(After({kCancelled, kTerminated}).cancelled(), "");
  EXPECT_EQ(After({kCancelled, kKilled}).cancelled(), "");
  // The tasks on one node may be told of before the step on another.
  EXPECT_EQ(After({kTerminated, kTimeLimit}).cancelled(), " DUE TO TIME LIMIT");
  // A shim that is killed with its rank may still report that.
  EXPECT_EQ(After({kKilledByOthers, kAborted, kTimeLimit, kKilled}).cancelled(),
            " DUE TO TIME LIMIT");
  EXPECT_EQ(After({kKilledByOthers, kKilled, kAborted, kCancelled}).cancelled(), std::nullopt);
  // Slurm 24.11 tells of the abort before the ends of tasks.
  EXPECT_EQ(After({kKilledByOthers, kAborted, kKilled, kCancelled}).cancelled(), std::nullopt);
  EXPECT_EQ(After({kAborted, kKilledByOthers, kCancelled, kKilled}).cancelled(), std::nullopt);
  EXPECT_EQ(After({kAborted, kCancelled, kKilled, kFailed}).cancelled(), std::nullopt);
  // srun cancels the step of a rank that failed.
  EXPECT_EQ(After({kFailed, kCancelled}).cancelled(), std::nullopt);
  EXPECT_EQ(After({kKilled, kCancelled}).cancelled(), std::nullopt);
  EXPECT_EQ(After({kTerminatedByOthers, kTerminated, kCancelled}).cancelled(), std::nullopt);
  // The shim of a rank that was killed with the whole step may still report it.
  const auto may_be_of_cancel = [](const std::vector<std::string>& lines) {
    return After(lines).failure()->may_be_of_cancel;
  };
  EXPECT_TRUE(may_be_of_cancel({kKilledByOthers, kAborted, kKilled, kCancelled}));
  EXPECT_TRUE(may_be_of_cancel({kCancelled, kKilledByOthers, kKilled}));
  EXPECT_FALSE(may_be_of_cancel({kKilledByOthers, kAborted, kKilledAlone, kKilled, kCancelled}));
  EXPECT_FALSE(may_be_of_cancel({kKilledByOthers, kKilled, kAborted, kCancelled}));
  EXPECT_FALSE(may_be_of_cancel({kAborted, kFailed, kKilledByOthers}));
  EXPECT_FALSE(may_be_of_cancel({kKilledByOthers}));
  EXPECT_EQ(After({kCancelled, kKilledAlone, kKilled}).cancelled(), std::nullopt);
  // A lost node is a cause that has a name.
  EXPECT_EQ(After({"srun: error: Node failure on n2", kCancelled}).cancelled(), std::nullopt);
}

TEST(RankEventParser, KnowsANodeThatSrunOrMpirunHasLost) {
  EXPECT_THAT(After({"srun: error: Node failure on n2"}).lost_nodes(), ElementsAre("n2"));
  EXPECT_THAT(After({"  Remote daemon: [prterun-n1-321@0,1] on node n3"}).lost_nodes(),
              ElementsAre("n3"));
}

TEST(RankEventParser, RepeatsTheLastLinesOfARankWhereOthersFollowThem) {
  const std::string report = "ddlrun-rank[key]: rank 1 | ";
  const auto last_lines = [&](const std::vector<std::string>& before) {
    std::vector<std::string> lines = before;
    lines.insert(lines.end(), {report + "one", report + "two", kFailed});
    return After(lines).failure()->last_lines;
  };
  EXPECT_THAT(last_lines({"one", "two"}), IsEmpty());
  EXPECT_THAT(last_lines({"zero", "one", "two"}), IsEmpty());
  EXPECT_THAT(last_lines({"one", "two", "of another rank"}), ElementsAre("one", "two"));
  EXPECT_THAT(last_lines({"two"}), ElementsAre("one", "two"));
  EXPECT_THAT(last_lines({"two", "one"}), ElementsAre("one", "two"));
  EXPECT_THAT(last_lines({}), ElementsAre("one", "two"));
}

TEST(RankEventParser, NamesTheRankThatIsTheCause) {
  const auto first = [](const std::string& one, const std::string& other,
                        const std::string& alone) {
    const auto line = [](int rank, const std::string& end) {
      const std::string head = "ddlrun-rank[key]: rank " + std::to_string(rank) + " on n2 (pid 7)";
      const std::size_t time = end.find(" at ");
      if (time == std::string::npos) return head + " ended with " + end;
      return head + " ended with " + end.substr(0, time) +
             " at 2026-11-22T12:13:" + end.substr(time + 4) + "Z";
    };
    return After({line(1, one), line(2, other), alone}).failure()->rank;
  };
  struct Case {
    std::string one, other;
    int cause;
    std::string alone = "";  // the last line
  };
  const std::string one_alone = kKilledAlone;
  const std::string other_alone = "ddlrun-rank[key]: rank 2 was killed alone";
  for (const Case& c : std::vector<Case>{
           {"exit code 3 at 22.500000", "exit code 1 at 22.500001", 1},
           {"exit code 3 at 22.500001", "exit code 1 at 22.500000", 2},
           {"exit code 3 at 23.600000", "exit code 1 at 22.500000", 1},
           // Of a killed rank its peers learn before its shim.
           {"exit code 14 at 22.500000", "signal 9 (Killed) at 22.600000", 2, other_alone},
           {"signal 9 (Killed) at 22.600000", "exit code 14 at 22.500000", 1, one_alone},
           {"signal 9 (Killed) at 22.600000", "signal 9 (Killed) at 22.500000", 1, one_alone},
           {"exit code 14 at 22.500000", "signal 9 (Killed) at 22.510000", 2},
           {"signal 9 (Killed) at 22.510000", "exit code 14 at 22.500000", 1},
           // But SIGKILL may be that of the step, which ends with the first failure.
           {"exit code 3 at 22.500000", "signal 9 (Killed) at 22.600000", 1},
           {"signal 9 (Killed) at 22.600000", "exit code 3 at 22.500000", 2},
           {"exit code 14 at 22.500000", "signal 9 (Killed) at 23.600000", 1, other_alone},
           {"signal 9 (Killed) at 23.600000", "exit code 14 at 22.500000", 1},
           {"signal 6 (Aborted) at 22.500000", "signal 11 (Segmentation fault) at 22.600000", 2},
           {"signal 7 (Bus error) at 22.600000", "signal 11 (Segmentation fault) at 22.500000", 2},
           {"exit code 14 at 23.000000", "signal 9 (Killed)", 1},  // of an earlier version
           // A library that has lost its peer aborts.
           {"exit code 1 at 22.500000", "signal 6 (Aborted) at 22.600000", 1},
           {"exit code 1 at 22.500000", "signal 13 (Broken pipe) at 22.600000", 1},
           // Who stopped early is no cause.
           {"exit code 75 at 22.500000", "exit code 1 at 22.600000", 2},
           {"exit code 1 at 22.600000", "exit code 75 at 22.500000", 1},
       }) {
    EXPECT_EQ(first(c.one, c.other, c.alone), c.cause) << c.one << ", " << c.other;
  }
}

TEST(RankEventParser, KnowsAStepThatSrunHasLeft) {
  EXPECT_FALSE(After({kKilled}).has_left_step());
  EXPECT_TRUE(After({"srun: error: Timed out waiting for job step to complete"}).has_left_step());
}

TEST(RankEventParser, CountsTheRanksThatHaveStarted) {
  RankEventParser reports("key");
  EXPECT_THAT(reports.started(), IsEmpty());
  const auto reading = reports.Read("ddlrun-rank[key]: rank 1 has started", 1);
  EXPECT_EQ(reading.instead, "");
  EXPECT_EQ(reading.event, Event::kStart);
  reports.Read("ddlrun-rank[key]: rank 1 has started", 1);
  EXPECT_THAT(reports.started(), ElementsAre(1));
}

TEST(RankEventParser, CountsTheRanksThatHaveEndedWellOrNot) {
  RankEventParser reports("key");
  const auto reading = reports.Read("ddlrun-rank[key]: rank 4 has ended", 1);
  EXPECT_EQ(reading.instead, "");
  EXPECT_EQ(reading.event, Event::kEnd);
  EXPECT_EQ(reports.Read("ddlrun-rank[key]: rank 2 on n2 (pid 8) ended with exit code 75", 1).event,
            Event::kEnd);
  reports.Read(kFailed, 1);  // rank 1
  EXPECT_THAT(reports.ended(), ElementsAre(1, 2, 4));
}

TEST(RankEventParser, KnowsWhereRanksHaveEnded) {
  EXPECT_THAT(
      After({kFailed, kTerminated, "srun: error: n[3-4]: tasks 4-7: Killed"}).hosts_with_ends(),
      ElementsAre("n2", "n[3-4]"));
}

TEST(RankEventParser, KnowsWhetherSrunWaitsForResources) {
  RankEventParser reports("key");
  const auto event = [&](const char* line) { return reports.Read(line, 1).event; };
  EXPECT_EQ(event("srun: Job 7 step creation temporarily disabled, retrying (Requested nodes are "
                  "busy)"),
            Event::kWaiting);
  EXPECT_EQ(event("srun: Step created for StepId=7.1"), Event::kGranted);
  EXPECT_EQ(event("srun: Step created for job 7"), Event::kGranted);
  EXPECT_EQ(event("srun: anything else"), Event::kNone);
}

TEST(RankEventParser, ShowsOnceWhatSeveralRanksRefuseAlike) {
  RankEventParser reports("key");
  const auto shown = [&reports](const std::string& line) {
    return reports.Read(line, 1).instead.value_or(line);
  };
  const std::string first = "ddlrun-rank: [ERROR DDL-20-69] rank 2 on n1: cannot start 'a: b'";
  const std::string other = "ddlrun-rank: [ERROR DDL-20-78] rank 4 on n2: no directory";
  EXPECT_EQ(shown(first), first);
  EXPECT_EQ(reports.rejection(), "rank 2 on n1: cannot start 'a: b'");
  EXPECT_EQ(shown("ddlrun-rank: [ERROR DDL-20-69] rank 3 on n2: cannot start 'a: b'"), "");
  EXPECT_EQ(shown(other), other);
  EXPECT_EQ(reports.rejection(), "rank 2 on n1: cannot start 'a: b'; 1 other rank says the same");
  EXPECT_EQ(shown(" 0: ddlrun-rank: [ERROR DDL-20-69] rank 0 on n1: cannot start 'a: b'"), "");
  EXPECT_EQ(reports.rejection(), "rank 2 on n1: cannot start 'a: b'; 2 other ranks say the same");
  for (const auto& [rank, error] :
       {std::pair(1, ""), std::pair(2, "cannot start 'a: b'; 2 other ranks say the same")}) {
    RankEventParser failing = reports;
    failing.Read("srun: error: n1: task " + std::to_string(rank) + ": Exited with exit code 69", 1);
    EXPECT_EQ(failing.failure()->error_line, error);
  }
}

}  // namespace
}  // namespace launcher
