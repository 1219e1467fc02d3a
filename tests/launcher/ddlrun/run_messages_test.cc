// SPDX-License-Identifier: Apache-2.0

#include "launcher/ddlrun/run_messages.h"

#include <csignal>

#include "tests/support/test.h"

namespace launcher {
namespace {

using Kind = OwnEnd::Kind;

JobResult Failure(int exit_code, int signal) {
  JobResult result{.exit_code = exit_code};
  result.failure.emplace();
  result.failure->rank = 6;
  result.failure->host = "n4";
  result.failure->exit_code = exit_code;
  result.failure->signal = signal;
  return result;
}

TEST(EndText, IsNothingAfterSuccess) { EXPECT_EQ(EndText({}, {}), ""); }

TEST(EndText, NamesTheRankThatFailedFirst) {
  EXPECT_THAT(EndText(Failure(3, 0), {}),
              HasSubstr("the job failed: rank 6 on n4 ended first, with exit code 3"));
}

TEST(ShowsCost, AfterARestartALateFailureOrOnRequest) {
  struct Row {
    RunCost cost;
    int exit_code;
    bool is_verbose, shows;
  };
  const Row rows[] = {{{.wall = 100}, 0, false, false},   {{.wall = 100}, 0, true, true},
                      {{.wall = 60}, 1, false, true},     {{.wall = 59.9}, 1, false, false},
                      {{.wall = 100}, 75, false, false},  {{.restarts = 1}, 0, false, true},
                      {{.restarts = 1}, 75, false, true}, {{.wall = 1}, 1, true, true}};
  for (const Row& row : rows) {
    EXPECT_EQ(ShowsCost(row.cost, row.exit_code, row.is_verbose), row.shows)
        << row.cost.wall << ' ' << row.cost.restarts << ' ' << row.exit_code;
  }
}

TEST(EndText, SaysWhyNoRankCouldStart) {
  JobResult result;
  result.exit_code = 78;
  result.is_before_start = true;
  result.launcher_end = "mpirun ended by itself, with exit code 1";
  result.launcher_has_given_up = true;
  result.own_end = {Kind::kRejected, 78, "job 14 has n1 now"};
  EXPECT_EQ(EndText(result, {}), "ddlrun: [ERROR DDL-20-78] job 14 has n1 now\n");
}

TEST(EndText, OfAStopBlamesNoRank) {
  JobResult result = Failure(143, SIGTERM);
  result.stop_requested = true;
  result.stop_signal = SIGTERM;
  EXPECT_EQ(EndText(result, {}), "ddlrun: stopped by SIGTERM (exit code 143)\n");
  // Slurm calls the step cancelled to which ddlrun has passed the signal on.
  result.cancelled = "";
  EXPECT_EQ(EndText(result, {}), "ddlrun: stopped by SIGTERM (exit code 143)\n");
  result.cancelled = " DUE TO TIME LIMIT";
  EXPECT_EQ(EndText(result, {}), "ddlrun: cancelled by Slurm due to time limit (exit code 143)\n");
}

TEST(EndText, OfAStopSaysWhatARankDidAfterIt) {
  JobResult result = Failure(3, 0);
  result.stop_signal = SIGHUP;
  EXPECT_EQ(EndText(result, {}),
            "ddlrun: rank 6 on n4 ended with exit code 3 after that\n"
            "ddlrun: stopped by SIGHUP (exit code 3)\n");
}

TEST(EndText, PrefersALostNodeToTheRankThatNoticed) {
  JobResult result = Failure(1, 0);
  result.lost_nodes = {"n2"};
  EXPECT_THAT(EndText(result, {}), HasSubstr("node n2 was lost"));
  EXPECT_THAT(EndText(result, {}), Not(HasSubstr("rank 6")));
}

TEST(EndText, SaysWhyDdlrunHasEndedTheJobUnlessANodeWasLost) {
  for (const Kind kind : {Kind::kHung, Kind::kStartHung}) {
    JobResult result{.exit_code = 70, .own_end = OwnEnd{kind, 70, "it hangs"}};
    EXPECT_EQ(EndText(result, {}), "ddlrun: [ERROR DDL-20-1] the job failed: it hangs\n");
    result.lost_nodes = {"n2"};
    EXPECT_THAT(EndText(result, {}),
                HasSubstr(kind == Kind::kHung ? "node n2 was lost" : "it hangs"));
    result.stop_signal = SIGTERM;
    EXPECT_EQ(EndText(result, {}), "ddlrun: stopped by SIGTERM (exit code 70)\n");
    result.exit_code = 75;
    EXPECT_EQ(EndText(result, {}),
              "ddlrun: it hangs; what was left was killed\n"
              "ddlrun: stopped early with a checkpoint written (exit code 75): start it again\n");
  }
}

TEST(EndText, NamesALauncherThatWasKilled) {
  JobResult result{.exit_code = 137, .launcher_end = "srun was ended by signal 9 (Killed)"};
  EXPECT_THAT(EndText(result, {}),
              HasSubstr("srun was ended by signal 9 (Killed), which is not ddlrun's doing"));
  result.is_before_start = true;
  EXPECT_THAT(EndText(result, {}),
              HasSubstr("srun was ended by signal 9 (Killed) before any rank had started"));
  result.launcher_end = "";
  EXPECT_THAT(EndText(result, {}), HasSubstr("exit code 137; the messages above say why"));
  result.rank_rejection = "rank 1 on n2: cannot start 'x': No such file or directory";
  EXPECT_THAT(EndText(result, {}),
              HasSubstr("exit code 137: rank 1 on n2: cannot start 'x': No such"));
}

TEST(EndText, OfALauncherThatHasGivenUpHasItsLastLines) {
  JobResult result;
  result.exit_code = 69;
  result.launcher_end = "mpirun ended by itself, with exit code 131";
  result.launcher_has_given_up = true;
  result.launcher_lines = {"a hostfile", "refused"};
  result.is_before_start = true;
  EXPECT_EQ(EndText(result, {}),
            "ddlrun: last lines of mpirun:\nddlrun:   | a hostfile\nddlrun:   | refused\n"
            "ddlrun: [ERROR DDL-20-1] the job failed: mpirun ended by itself, with exit code 131, "
            "before any rank had started\n");
  result.is_before_start = false;
  EXPECT_THAT(EndText(result, {}), HasSubstr("131, and no rank is known to have failed"));
  result.launcher_advice = "see there";
  EXPECT_THAT(EndText(result, {}), HasSubstr("is known to have failed; see there\n"));
}

TEST(EndText, NamesRanksOfWhichNoEndWasHeard) {
  EXPECT_THAT(EndText({.exit_code = 69, .unresponsive = {"rank 2 on n2", "rank 3 on n2"}}, {}),
              HasSubstr("did not report the exit of rank 2 on n2, rank 3 on n2: "));
}

TEST(EndText, OfAClosedOutputBlamesNoRank) {
  JobResult result = Failure(141, SIGPIPE);
  result.own_end = {Kind::kClosedOutput, 141,
                    "nobody reads the output any more, so the job was ended"};
  EXPECT_EQ(EndText(result, {}),
            "ddlrun: nobody reads the output any more, so the job was ended (exit code 141)\n");
}

TEST(EndText, OfAnEarlyStopSaysWhatToDoUnlessItIsDone) {
  JobResult result{.exit_code = 75};
  EXPECT_EQ(EndText(result, {}),
            "ddlrun: stopped early with a checkpoint written (exit code 75): start it again\n");
  const Decision requeued = {Decision::Next::kRequeue, 0, "put into the queue again"};
  EXPECT_EQ(EndText(result, requeued),
            "ddlrun: stopped early with a checkpoint written (exit code 75)\n"
            "ddlrun: put into the queue again\n");
}

TEST(EndText, HasTheCauseLastUnlessItGoesOn) {
  const std::string cause = EndText(Failure(3, 0), {});
  EXPECT_EQ(EndText(Failure(3, 0), {Decision::Next::kEnd, 0, "no restart is left"}),
            "ddlrun: no restart is left\n" + cause);
  EXPECT_EQ(EndText(Failure(3, 0), {Decision::Next::kRestart, 0, "starting again"}),
            cause + "ddlrun: starting again\n");
}

TEST(EndText, BeginsWithNotes) {
  JobResult result = Failure(3, 0);
  result.notes = {"12 lines of output were dropped"};
  EXPECT_THAT(EndText(result, {}), StartsWith("ddlrun: 12 lines of output were dropped\n"));
}

class AnnouncementTest : public testing::Test {
 protected:
  AnnouncementTest() {
    planned_.plan.ranks.resize(2);
    planned_.plan.warnings = {"[WARN DDL-21-4] n1: 2 ranks share 1 GPU"};
    launch_.choice = {"srun", "inside Slurm", "pmix"};
  }
  std::string Text(bool is_root = false) const {
    return Announcement(options_, planned_, settings_, launch_, is_root);
  }

  Options options_;
  PlannedJob planned_;
  Settings settings_;
  Launch launch_;
};

TEST_F(AnnouncementTest, HasTheWarningsOfThePlanAndTheReason) {
  EXPECT_EQ(Text(),
            "ddlrun: [WARN DDL-21-4] n1: 2 ranks share 1 GPU\n"
            "ddlrun: starting 2 ranks with the srun launcher: inside Slurm\n");
  launch_.choice.reason = "";  // the user has chosen it
  EXPECT_EQ(Text(), "ddlrun: [WARN DDL-21-4] n1: 2 ranks share 1 GPU\n");
}

TEST_F(AnnouncementTest, HasTheWarningsAboutArgumentsForMpirunFirst) {
  settings_.warnings = {"[WARN DDL-22-2] left out"};
  EXPECT_THAT(Text(), StartsWith("ddlrun: [WARN DDL-22-2] left out\nddlrun: [WARN DDL-21-4]"));
  launch_.choice = {"mpirun", "it is installed", ""};
  EXPECT_EQ(Text(true),
            "ddlrun: [WARN DDL-22-2] left out\n"
            "ddlrun: [WARN DDL-21-4] n1: 2 ranks share 1 GPU\n"
            "ddlrun: starting 2 ranks with the mpirun launcher: it is installed\n"
            "ddlrun: started by root, so mpirun gets --allow-run-as-root\n");
}

TEST_F(AnnouncementTest, NamesOptionsThatTheLauncherDoesNotUse) {
  settings_.requested_mpi_arguments = {"-x",  "A=1", "--quiet",   "--mca",
                                       "pml", "ob1", "--timeout", "9"};
  options_.pmi = "pmix";
  EXPECT_THAT(Text(), HasSubstr("[WARN DDL-22-3] --mpiarg '--quiet --timeout 9' is not used by the "
                                "srun launcher; --launcher=mpirun uses it\n"));
  EXPECT_THAT(Text(), Not(HasSubstr("--pmi is not used")));
  launch_.choice = {"local", "", ""};
  EXPECT_THAT(Text(), HasSubstr("--pmi is not used by the local launcher"));
  EXPECT_THAT(Text(), Not(HasSubstr("--srunarg")));
  settings_.has_requested_srun_arguments = true;
  EXPECT_THAT(Text(),
              HasSubstr("[WARN DDL-22-3] --srunarg is not used by the local launcher; it is "
                        "for ranks that srun starts inside Slurm\n"));
  settings_.requested_mpi_arguments.resize(2);
  EXPECT_THAT(Text(), Not(HasSubstr("--mpiarg")));
  settings_.requested_mpi_arguments = {"--quiet"};
  launch_.choice = {"mpirun", "", ""};
  EXPECT_THAT(Text(), Not(HasSubstr("--mpiarg")));
  launch_.choice = {"srun", "", ""};
  EXPECT_THAT(Text(), Not(HasSubstr("--srunarg")));
}

}  // namespace
}  // namespace launcher
