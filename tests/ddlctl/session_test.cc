// SPDX-License-Identifier: Apache-2.0

#include "ddlctl/session.h"

#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "ddlctl/job.h"
#include "ddlctl/options.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_directory.h"
#include "tests/trainer/control/sample_status.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/run_lock.h"
#include "trainer/control/control_socket.h"
#include "trainer/core/error.h"

namespace ddlctl {
namespace {

using launcher::JobStatus;
using trainer::ControlCommand;
using trainer::Error;

using State = JobStatus::RankState;

constexpr double kNow = 1795343400;

JobStatus FakeJob() {
  JobStatus status;
  status.job = "12";
  status.host = "n1";
  status.pid = 4711;
  status.launcher = "srun";
  status.restarts = 1;
  status.program = "python train.py";
  status.written = kNow - 1;
  status.started = kNow - 725;
  status.ends = kNow + 3600;
  status.ranks = {{"n1", State::kRunning, 0, 0.25},
                  {"n1", State::kRunning, 0, 12.5},
                  {"n2", State::kEnded, 137, 100},
                  {"n2", State::kStarting, 0, 3}};
  return status;
}

TEST(JobText, HasAllThatIsKnown) {
  const std::string text = JobText(FakeJob(), kNow);
  EXPECT_THAT(text, HasSubstr("job            12\n"));
  EXPECT_THAT(text, HasSubstr("program        python train.py\n"));
  EXPECT_THAT(text, HasSubstr("ddlrun         process 4711 on n1, srun\n"));
  EXPECT_THAT(text, HasSubstr(", 0:12:05 ago; 1 restart\n"));
  EXPECT_THAT(text, HasSubstr(", 1:00:00 left\n"));
  EXPECT_THAT(text, HasSubstr("ranks          4 on 2 nodes: 1 starting, 2 running, 1 ended; rank 2 "
                              "on n2: exit code 137\n"));
  // The rank that has ended needs none.
  EXPECT_THAT(text, HasSubstr("heartbeat      0.2 s ago; longest ago rank 1 on n1: 12.5 s\n"));
  EXPECT_THAT(text, Not(HasSubstr("old  ")));
}

TEST(JobText, SaysWhatIsNotKnownAndWhatIsOld) {
  JobStatus status = FakeJob();
  status.ends.reset();
  for (JobStatus::Rank& rank : status.ranks) rank.silence.reset();
  status.written = kNow - 60;
  const std::string text = JobText(status, kNow);
  EXPECT_THAT(text, AllOf(HasSubstr("time limit     not known\n"), Not(HasSubstr("heartbeat"))));
  EXPECT_THAT(text, HasSubstr("old            this was written 0:01:00 ago: ddlrun is gone"));
}

TEST(JobText, OfManyRanksIsOldAsEarly) {
  JobStatus status = FakeJob();
  status.ranks.resize(32768);
  status.written = kNow - 19;
  EXPECT_THAT(JobText(status, kNow), Not(HasSubstr("old  ")));
  status.written = kNow - 21;
  EXPECT_THAT(JobText(status, kNow), HasSubstr("old  "));
}

TEST(JobText, ShowsFewOfManyFailures) {
  JobStatus status = FakeJob();
  status.ranks.assign(20, {"n1", State::kEnded, 1, std::nullopt});
  const std::string text = JobText(status, kNow);
  EXPECT_THAT(text, HasSubstr("rank 7 on n1: exit code 1; 12 more\n"));
  EXPECT_THAT(text, Not(HasSubstr("rank 8 ")));
}

TEST(JobJson, HasEachRank) {
  const auto json = nlohmann::json::parse(JobJson(FakeJob(), kNow));
  EXPECT_EQ(json["job"], "12");
  EXPECT_EQ(json["restarts"], 1);
  EXPECT_EQ(json["is_old"], false);
  ASSERT_EQ(json["ranks"].size(), 4U);
  EXPECT_EQ(json["ranks"][2]["exit_code"], 137);
  EXPECT_TRUE(json["ranks"][0]["exit_code"].is_null());
  EXPECT_EQ(json["ranks"][1]["silence_seconds"], 12.5);
  EXPECT_EQ(json["ranks"][3]["state"], "starting");
}

TEST(RunDirectoryBases, AreThoseOfDdlrun) {
  EXPECT_THAT(RunDirectoryBases({{"TMPDIR", "/scratch"}}),
              ElementsAre("/scratch", "/tmp", "/dev/shm"));
}

TEST(RunDirectoryBases, HaveThatOfTheSite) {
  const TemporaryDirectory directory;
  const fs::path site = directory.path() / "site.yaml";
  std::ofstream(site) << "run_directory: /local\n";
  EXPECT_THAT(RunDirectoryBases({{"DDLRUN_SITE", site.string()}}),
              ElementsAre("/local", "/tmp", "/dev/shm"));
  std::ofstream(site) << "run_directory: [\n";  // ddlrun says so
  EXPECT_THAT(RunDirectoryBases({{"DDLRUN_SITE", site.string()}}), ElementsAre("/tmp", "/dev/shm"));
}

TEST(IsJobNumber, IsOneThatIsNoDirectory) {
  EXPECT_TRUE(IsJobNumber("1234567"));
  EXPECT_TRUE(IsJobNumber("12_3"));
  for (const char* name : {"", "run", "./12", "12a", "-1"}) EXPECT_FALSE(IsJobNumber(name)) << name;
}

class JobDirectoryTest : public testing::Test {
 protected:
  // The run directory of a job.
  fs::path Make(const std::string& name, const JobStatus& status, mode_t mode = 0700) {
    const fs::path directory = base_.path() / name;
    fs::create_directory(directory);
    std::ofstream(directory / launcher::kStatusFileName) << FormatJobStatus(status);
    EXPECT_EQ(::chmod(directory.c_str(), mode), 0);
    return directory;
  }

  TemporaryDirectory base_;
};

TEST_F(JobDirectoryTest, TheNewestOfTheJobIsFound) {
  JobStatus status = FakeJob();
  Make("ddlrun.aaaaaa", status);
  status.restarts = 5;
  status.written += 10;
  Make("ddlrun.bbbbbb", status);
  status.restarts = 6;
  status.written += 10;
  Make("ddlrun.cccccc", status, 0755);  // anybody may have written there
  Make("other", status);
  status.job = "13";
  Make("ddlrun.dddddd", status);
  fs::create_directory(base_.path() / "ddlrun.eeeeee");
  const auto found = FindJobStatus("12", {base_.path() / "none", base_.path()});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->restarts, 5);
  EXPECT_FALSE(FindJobStatus("14", {base_.path()}).has_value());
}

TEST_F(JobDirectoryTest, AFileOfThisNameThatSomebodyElseHasWrittenIsNone) {
  const auto directory = Make("results", FakeJob());
  for (const char* text : {"", "all is well\n", "ddlrun", "\nddlrun-status 1\n"}) {
    std::ofstream(directory / launcher::kStatusFileName) << text;
    EXPECT_FALSE(ReadJobStatus(directory).has_value()) << text;
  }
}

TEST_F(JobDirectoryTest, AFileThatIsNoStatusIsRejected) {
  const auto directory = Make("ddlrun.aaaaaa", FakeJob());
  ASSERT_TRUE(ReadJobStatus(directory).has_value());
  EXPECT_FALSE(ReadJobStatus(base_.path()).has_value());
  std::ofstream(directory / launcher::kStatusFileName) << "ddlrun-status 1\nin other words\n";
  EXPECT_THAT(tests::Rejection<trainer::Error>(EX_DATAERR, [&] { ReadJobStatus(directory); }),
              HasSubstr("status: not written by a ddlrun of this version"));
  EXPECT_FALSE(FindJobStatus("12", {base_.path()}).has_value());
}

// A Slurm whose squeue is a script.
class RunningJobTest : public testing::Test {
 protected:
  // What squeue writes, and its exit code.
  void Squeue(const std::string& text, int exit_code = 0) {
    const fs::path file = directory_.path() / "squeue";
    std::ofstream(file) << "#!/bin/sh\nprintf '%s' '" << text << "'\nexit " << exit_code << "\n";
    EXPECT_EQ(::chmod(file.c_str(), 0700), 0);
  }

  // "NUMBER on NODE".
  std::string Find(const std::string& number) const {
    const auto job = FindRunningJob(number, {{"PATH", directory_.path().string()}});
    return job ? job->number + " on " + job->node : "nothing";
  }

  std::string Rejection(const std::string& number) const {
    return tests::Rejection<trainer::Error>(EX_UNAVAILABLE, [&] { Find(number); });
  }

  TemporaryDirectory directory_;
};

TEST_F(RunningJobTest, IsOnTheNodeOfItsScript) {
  EXPECT_EQ(Find("12"), "nothing");  // there is no squeue
  Squeue("RUNNING n1 12\n");
  EXPECT_EQ(Find("12"), "12 on n1");
  Squeue("RUNNING n1 12\nRUNNING n2 13\n");  // a heterogeneous job
  EXPECT_EQ(Find("12"), "12 on n1");
}

TEST_F(RunningJobTest, OfAnArrayHasTheNumberOfTheTask) {
  Squeue("RUNNING n1 14\n");
  EXPECT_EQ(Find("12_3"), "14 on n1");
  Squeue("PENDING N/A 12\nCOMPLETED n1 13\nRUNNING n3 14\n");
  EXPECT_EQ(Find("12"), "14 on n3");
}

// Defaults of the user would leave out jobs that are asked for by number.
TEST_F(RunningJobTest, IsAskedForWithoutDefaultsOfTheUser) {
  Squeue("");
  std::ofstream(directory_.path() / "squeue")
      << "#!/bin/sh\n[ -n \"$SQUEUE_PARTITION\" ] || echo RUNNING n1 12\n";
  const auto job =
      FindRunningJob("12", {{"PATH", directory_.path().string()}, {"SQUEUE_PARTITION", "gpu"}});
  ASSERT_TRUE(job);
  EXPECT_EQ(job->number, "12");
}

TEST_F(RunningJobTest, ThatDoesNotRunIsRejectedWithItsState) {
  Squeue("PENDING N/A 12\n");
  EXPECT_EQ(Rejection("12"), "job 12 is not running: its state is PENDING");
  Squeue("");
  EXPECT_EQ(Rejection("12"), "job 12 is not running");
}

TEST_F(RunningJobTest, IsNotFoundForTheReasonThatSqueueSays) {
  Squeue("slurm_load_jobs error: Invalid job id specified\nmore\n", 1);
  EXPECT_EQ(Rejection("12"),
            "job 12 is not found: slurm_load_jobs error: Invalid job id specified");
  Squeue("", 1);
  EXPECT_EQ(Rejection("12"), "job 12 is not found: squeue does not answer");
}

TEST_F(RunningJobTest, HasTheTimeLimitThatSqueueSays) {
  const launcher::Environment environment = {{"PATH", directory_.path().string()},
                                             {"SLURM_TIME_FORMAT", "relative"},
                                             {"SQUEUE_PARTITION", "gpu"}};
  EXPECT_EQ(EndOfJob("12", environment), std::nullopt);  // there is no squeue
  std::ofstream(directory_.path() / "squeue")
      << "#!/bin/sh\n[ \"$SLURM_TIME_FORMAT\" = standard ] && [ -z \"$SQUEUE_PARTITION\" ] &&\n"
         "case \"$*\" in *=%e*=12) echo 2026-11-29T10:00:00; echo 2027-01-01T00:00:00 ;;\n"
         "*=13) echo NONE ;; *) exit 1 ;; esac\n";
  EXPECT_EQ(::chmod((directory_.path() / "squeue").c_str(), 0700), 0);
  const std::optional<double> end = EndOfJob("12", environment);
  ASSERT_TRUE(end);
  EXPECT_EQ(trainer::IsoTime(trainer::TimePoint(std::chrono::seconds(static_cast<long>(*end))))
                .substr(0, 19),
            "2026-11-29T10:00:00");
  EXPECT_EQ(EndOfJob("13", environment), std::nullopt);  // no time limit
  EXPECT_EQ(EndOfJob("14", environment), std::nullopt);  // squeue fails
  EXPECT_EQ(EndOfJob("", environment), std::nullopt);
}

class SessionTest : public testing::Test {
 protected:
  SessionTest() {
    address_.host = trainer::HostName();
    address_.pid = 7;
    address_.socket = Path("socket");
  }
  std::string Path(const std::string& name) const { return (directory_.path() / name).string(); }
  void Write() const {
    std::ofstream(Path(trainer::kControlAddressName)) << FormatAddress(address_);
  }
  void WriteFinalStatus() {
    address_.last = trainer::SampleStatus();
    address_.last->state = trainer::RunState::kDone;
    Write();
  }
  static std::string RejectionOf(const std::function<void()>& call) {
    return tests::Rejection<Error>(
        EX_UNAVAILABLE, [&] { call(); }, "none");
  }

  const TemporaryDirectory directory_;
  trainer::ControlAddress address_;
  trainer::RunControl control_{{.ranks = 2, .host = "n1", .pid = 7, .version = "1", .job = ""}, 10};
};

TEST_F(SessionTest, SaysThatThereWasNoTraining) {
  EXPECT_THAT(RejectionOf([&] { Session session(directory_.path()); }),
              HasSubstr("there is no training in " + directory_.path().string() +
                        " that can be asked (no .ddltraind.control in it)"));
}

TEST_F(SessionTest, AsksTheTrainingThatTheFileNames) {
  Write();
  const trainer::ControlServer server(address_.socket, control_, ::geteuid());
  Session session(directory_.path());
  EXPECT_TRUE(session.is_within_reach());
  EXPECT_EQ(session.Status().state, trainer::RunState::kStarting);
  EXPECT_EQ(session.Ask({ControlCommand::kStop}).rejection, "");
  EXPECT_TRUE(control_.Look().stop);
}

TEST_F(SessionTest, OfATrainingThatHasEndedKnowsItsLastWordsAlone) {
  WriteFinalStatus();
  Session session(directory_.path());
  EXPECT_EQ(session.Status().step, 1200);
  EXPECT_EQ(RejectionOf([&] { session.Ask({ControlCommand::kPause}); }),
            "the training in " + directory_.path().string() + " has ended: done, step 1200/25000");
}

TEST_F(SessionTest, ReadsTheLastWordsOfATrainingThatEndsMeanwhile) {
  Write();
  std::optional<trainer::ControlServer> server;
  server.emplace(address_.socket, control_, ::geteuid());
  Session session(directory_.path());
  session.Status();
  WriteFinalStatus();
  server.reset();
  EXPECT_EQ(session.Status().state, trainer::RunState::kDone);
}

TEST_F(SessionTest, FollowsTheNextLaunch) {
  Write();
  Session session(directory_.path());
  address_.socket = Path("second");
  Write();
  const trainer::ControlServer server(address_.socket, control_, ::geteuid());
  EXPECT_EQ(session.Status().identity.host, "n1");
}

TEST_F(SessionTest, SaysThatATrainingWasKilled) {
  Write();
  Session session(directory_.path());
  EXPECT_THAT(RejectionOf([&] { session.Status(); }),
              HasSubstr("does not run any more: rank 0, process 7 on " + address_.host + ","));
}

// As where systemd-tmpfiles has cleaned /tmp, or in a container that has another one.
TEST_F(SessionTest, ATrainingThatRunsIsNotSaidToBeOverWhereItsSocketIsGone) {
  Write();
  const std::string results = directory_.path().string();
  const auto runs =
      AllOf(HasSubstr("the training in " + results + " runs (process "),
            HasSubstr("its socket " + address_.socket + " cannot be reached from here"),
            HasSubstr("touch " + results + "/stop ends it with a checkpoint"));
  Session session(directory_.path());
  const auto refusals = [&] {
    return std::vector<std::string>{RejectionOf([&] { session.Status(); }),
                                    RejectionOf([&] { session.Ask({ControlCommand::kStop}); })};
  };
  auto lock = trainer::LockRun(directory_.path(), {});
  EXPECT_THAT(refusals(), Each(runs));
  // A socket that is left, at which nobody listens.
  std::ofstream(address_.socket).put('x');
  EXPECT_THAT(refusals(), Each(runs));
  // Left by a run that was killed.
  lock.reset();
  std::ofstream(Path(".ddltraind.lock")).put('x');
  EXPECT_THAT(refusals(), Each(HasSubstr("does not run any more")));
  // The lock is in another --model_dir.
  address_.pid = ::getpid();
  Write();
  ASSERT_EQ(::prctl(PR_SET_NAME, "ddltraind"), 0);
  EXPECT_THAT(RejectionOf([&] { Session(directory_.path()).Status(); }), runs);
  ASSERT_EQ(::prctl(PR_SET_NAME, "other"), 0);
  EXPECT_THAT(RejectionOf([&] { Session(directory_.path()).Status(); }),
              HasSubstr("does not run any more"));
}

TEST_F(SessionTest, ATrainingOnAnotherMachineIsOutOfReachUntilItHasEnded) {
  address_.host = "elsewhere";
  Write();
  EXPECT_FALSE(Session(directory_.path()).is_within_reach());
  WriteFinalStatus();
  EXPECT_TRUE(Session(directory_.path()).is_within_reach());
}

Options Parsed(const std::vector<std::string>& words) {
  Options options;
  support::Parse(DescribeOptions(options), words);
  return options;
}

std::string RejectionOf(const std::vector<std::string>& words) {
  return tests::Rejection<support::UsageError>([&] { Parsed(words); }, "none");
}

TEST(CtlOptions, StatusAndWatchAskForNothing) {
  const Options status = Parsed({"status", "--json", "RUN"});
  EXPECT_EQ(status.command, Command::kStatus);
  EXPECT_EQ(status.request.command, std::nullopt);
  EXPECT_EQ(status.results_dir, "RUN");
  EXPECT_TRUE(status.as_json);
  const Options watch = Parsed({"watch", "RUN", "--interval=0.5", "--job=17"});
  EXPECT_EQ(watch.command, Command::kWatch);
  EXPECT_EQ(watch.interval, 0.5);
  EXPECT_EQ(watch.job, "17");
}

TEST(CtlOptions, EachOrderHasACommand) {
  for (const ControlCommand command :
       {ControlCommand::kPause, ControlCommand::kResume, ControlCommand::kCheckpoint,
        ControlCommand::kEvaluate, ControlCommand::kStop}) {
    const Options options = Parsed({std::string(NameOf(command)), "RUN", "--no-wait"});
    EXPECT_EQ(options.command, Command::kOrder);
    EXPECT_EQ(options.request.command, command);
    EXPECT_TRUE(options.no_wait);
    EXPECT_FALSE(Parsed({std::string(NameOf(command)), "RUN"}).no_wait);
  }
  const Options set = Parsed({"set", "display_every=5", "RUN"});
  EXPECT_EQ(set.request.command, ControlCommand::kSet);
  EXPECT_EQ(set.request.display_every, 5);
  EXPECT_EQ(set.results_dir, "RUN");
}

TEST(CtlOptions, StacksTakesNoOrdersOptions) {
  const Options stacks = Parsed({"stacks", "RUN"});
  EXPECT_EQ(stacks.command, Command::kStacks);
  EXPECT_EQ(stacks.results_dir, "RUN");
  EXPECT_FALSE(stacks.all_threads);
  EXPECT_TRUE(Parsed({"stacks", "--all-threads", "RUN"}).all_threads);
  EXPECT_THAT(RejectionOf({"stacks"}), HasSubstr("RESULTS_DIR is required"));
  EXPECT_THAT(RejectionOf({"stacks", "RUN", "--no-wait"}), HasSubstr("--no-wait"));
}

TEST(CtlOptions, CheckpointHasCommandsBelowIt) {
  const Options list = Parsed({"checkpoint", "list", "RUN"});
  EXPECT_EQ(list.command, Command::kListCheckpoints);
  EXPECT_EQ(list.model_dir, "RUN");
  EXPECT_EQ(list.request.command, std::nullopt);
  const Options verify = Parsed({"checkpoint", "verify", "RUN", "1200"});
  EXPECT_EQ(verify.command, Command::kVerifyCheckpoints);
  EXPECT_EQ(verify.step, 1200);
  EXPECT_EQ(Parsed({"checkpoint", "verify", "RUN"}).step, std::nullopt);
  const Options newest = Parsed({"checkpoint", "export", "RUN", "w.safetensors"});
  EXPECT_EQ(newest.command, Command::kExportCheckpoint);
  EXPECT_EQ(newest.step, std::nullopt);
  EXPECT_EQ(newest.export_file, "w.safetensors");
  const Options exported = Parsed({"checkpoint", "export", "RUN", "0", "w.safetensors"});
  EXPECT_EQ(exported.step, 0);
  EXPECT_EQ(exported.export_file, "w.safetensors");
}

TEST(CtlOptions, ADirectoryOfTheNameOfACommandIsWrittenWithItsPlace) {
  const Options command = Parsed({"checkpoint", "./list"});
  EXPECT_EQ(command.command, Command::kOrder);
  EXPECT_EQ(command.request.command, ControlCommand::kCheckpoint);
  EXPECT_EQ(command.results_dir, "./list");
  EXPECT_EQ(Parsed({"checkpoint", "list", "./list"}).model_dir, "./list");
}

TEST(CtlOptions, MisuseOfTheCommandsForFilesIsNamed) {
  EXPECT_THAT(RejectionOf({"checkpoint"}), HasSubstr("RESULTS_DIR is required"));
  EXPECT_THAT(RejectionOf({"checkpoint", "list"}), HasSubstr("DIR is required"));
  EXPECT_THAT(RejectionOf({"checkpoint", "RUN", "list"}),
              HasSubstr("checkpoint list DIR is the order of the words"));
  EXPECT_THAT(RejectionOf({"checkpoint", "verify", "RUN", "-1"}), HasSubstr("-1"));
  EXPECT_THAT(RejectionOf({"checkpoint", "verify", "RUN", "x"}),
              HasSubstr("needs the number of a step, not 'x'"));
  EXPECT_THAT(RejectionOf({"checkpoint", "export", "RUN"}),
              HasSubstr("FILE is required: DIR [STEP] FILE.safetensors"));
  EXPECT_THAT(RejectionOf({"checkpoint", "export", "RUN", "12"}),
              HasSubstr("FILE needs a name that ends in .safetensors, not '12'"));
  EXPECT_THAT(RejectionOf({"checkpoint", "export", "RUN", "w.safetensors", "12"}),
              HasSubstr("FILE needs a name that ends in .safetensors, not '12'"));
  EXPECT_THAT(RejectionOf({"checkpoint", "export", "RUN", "12x", "w.safetensors"}),
              HasSubstr("STEP needs the number of a step, not '12x'"));
}

// As the call on the other node has it behind what the user wrote.
TEST(CtlOptions, OfSrunTheLastCounts) {
  EXPECT_EQ(Parsed({"status", "RUN"}).srun, "auto");
  EXPECT_EQ(Parsed({"status", "--srun=auto", "RUN", "--srun=never"}).srun, "never");
}

TEST(CtlOptions, MisuseIsNamed) {
  EXPECT_THAT(RejectionOf({"status"}), HasSubstr("RESULTS_DIR is required"));
  EXPECT_THAT(RejectionOf({"set", "RUN"}), HasSubstr("needs display_every=N, N from 1, not 'RUN'"));
  for (const char* setting : {"display_every=0", "display_every=", "display_every=5x",
                              "display_every=-1", "display_every=2147483648", "every=5"}) {
    EXPECT_THAT(RejectionOf({"set", setting, "RUN"}),
                HasSubstr("needs display_every=N, N from 1, not '" + std::string(setting) + "'"));
  }
  for (const char* interval : {"0", "-1", "x", "3601", "nan"}) {
    EXPECT_THAT(RejectionOf({"watch", "RUN", "--interval", interval}),
                HasSubstr("needs 0.1 to 3600 seconds"))
        << interval;
  }
  for (const char* job : {"", "--all", "1 2"}) {
    EXPECT_THAT(RejectionOf({"status", "RUN", "--job=" + std::string(job)}),
                Not(testing::StrEq("none")))
        << job;
  }
  EXPECT_THAT(RejectionOf({"status", "RUN", "--job=abc"}), HasSubstr("needs the number of a job"));
  EXPECT_THAT(RejectionOf({"status", "RUN", "--srun=always"}), HasSubstr("always"));
}

}  // namespace
}  // namespace ddlctl
