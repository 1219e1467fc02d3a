// SPDX-License-Identifier: Apache-2.0

#include "launcher/restart/restarts.h"

#include <unistd.h>

#include "launcher/base/error.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

using Kind = OwnEnd::Kind;

TEST(ProgressFile, IsWhatWasNamedOrTheCheckpointsOfATraining) {
  const auto of = [](const std::vector<std::string>& program, const std::string& named = "") {
    Options options;
    options.program = program;
    options.progress_file = named;
    return ProgressFile(options);
  };
  EXPECT_EQ(of({"./train"}), "");
  EXPECT_EQ(of({"./train"}, "file"), "file");
  EXPECT_EQ(of({"ddltraind"}), "checkpoints");
  EXPECT_EQ(of({"ddltraind", "--results_dir=a", "--results_dir=r"}), "r/checkpoints");
  EXPECT_EQ(of({"ddltraind", "--results_dir=r"}, "file"), "file");
  EXPECT_EQ(of({"/opt/bin/ddltraind", "--model_dir", "m", "--results_dir", "r"}), "m/checkpoints");
  EXPECT_EQ(of({"apptainer", "exec", "image", "ddltraind", "--mode=train_and_evaluate"}),
            "checkpoints");
  EXPECT_EQ(of({"ddltraind", "--mode=training_benchmark"}), "");
  EXPECT_EQ(of({"ddltraind", "--mode=evaluate"}), "");
  EXPECT_EQ(of({"ddltraind", "--mode=train", "--results_dir", "r"}), "r/checkpoints");
  EXPECT_EQ(of({"ddltraind", "--results_dir"}), "checkpoints");
}

TEST(Restarts, LeavesOutAsManyNodesAsAreDispensable) {
  Options options;
  options.max_restarts = 1;
  const Environment environment;
  Restarts without_any(options, environment, /*dispensable_nodes=*/0);
  EXPECT_FALSE(without_any.LeaveOut({"n1"}));
  EXPECT_TRUE(without_any.lost_nodes().empty());
  Restarts restarts(options, environment, /*dispensable_nodes=*/2);
  EXPECT_TRUE(restarts.LeaveOut({"n2"}));
  EXPECT_FALSE(restarts.LeaveOut({"n3", "n4"}));
  EXPECT_TRUE(restarts.LeaveOut({"n2", "n4"}));  // one of them is known
  EXPECT_EQ(restarts.lost_nodes(), (std::vector<std::string>{"n2", "n4"}));
  EXPECT_FALSE(restarts.LeaveOut({"n5"}));
}

// A run that ended because this node was lost.
JobResult Lost(const std::string& host) {
  JobResult result;
  result.exit_code = 137;
  result.lost_nodes = {host};
  return result;
}

TEST(Restarts, GoOnUntilNoNodeIsDispensable) {
  Options options;
  options.max_restarts = 9;
  const Environment environment;
  Restarts restarts(options, environment, /*dispensable_nodes=*/2, /*min_nodes=*/2);
  restarts.BeforeRun({});
  const Decision first = restarts.AfterRun(Lost("n2"));
  EXPECT_EQ(first.next, Decision::Next::kRestart);
  EXPECT_EQ(first.reason, "starting again in 2 s, restart 1 of 9, without n2");
  restarts.BeforeRun({});
  const Decision second = restarts.AfterRun(Lost("n4"));
  EXPECT_EQ(second.next, Decision::Next::kRestart);
  EXPECT_EQ(second.reason, "starting again in 8 s, restart 2 of 9, without n2, n4");
  restarts.BeforeRun({});
  const Decision third = restarts.AfterRun(Lost("n3"));
  EXPECT_EQ(third.next, Decision::Next::kEnd);
  EXPECT_EQ(third.reason, "not started again: 1 node is left, and --min-nodes is 2");
}

// As where two nodes were lost together, and Slurm has said so of one of them first.
TEST(Restarts, GoOnWithoutANodeThatWasLostBeforeTheNextStart) {
  Options options;
  options.max_restarts = 9;
  const Environment environment;
  JobResult result = Lost("n3");
  result.exit_code = EX_CONFIG;
  result.own_end = {Kind::kRejected, EX_CONFIG, "the job has 2 nodes now"};
  Restarts restarts(options, environment, /*dispensable_nodes=*/1);
  restarts.BeforeRun({});
  EXPECT_EQ(restarts.AfterRun(result).next, Decision::Next::kRestart);
  result.lost_nodes.clear();
  restarts.BeforeRun({});
  EXPECT_EQ(restarts.AfterRun(result).next, Decision::Next::kEnd);
  Restarts without_any(options, environment, /*dispensable_nodes=*/0);
  without_any.BeforeRun({});
  EXPECT_EQ(without_any.AfterRun(Lost("n3")).next, Decision::Next::kEnd);
}

// In a job of a Slurm that is not here: a scontrol that prints a file, and writes down what was
// asked of it.
class RestartsInSlurm : public testing::Test {
 protected:
  RestartsInSlurm() : directory_(testing::TempDir() + "restarts." + std::to_string(getpid())) {
    fs::create_directory(directory_);
    std::ofstream(directory_ / "scontrol")
        << "#!/bin/sh\ncd " << directory_
        << "\necho \"$*\" >> asked\n"
           "[ $1 != requeue ] || { cat refusal 2> /dev/null; exec test ! -e refusal; }\n"
           "exec cat answer\n";
    fs::permissions(directory_ / "scontrol", fs::perms::owner_all);
    Answer("");
  }
  ~RestartsInSlurm() override { fs::remove_all(directory_); }

  // What scontrol says of the job from now on, behind what every job has.
  void Answer(const std::string& words, const std::string& state = "RUNNING") {
    Write("answer",
          "JobId=7 JobState=" + state + " " + words + " Requeue=1 BatchFlag=1 NodeList=n1");
  }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(directory_ / name) << text << "\n";
  }
  std::string Requested() const {
    std::ifstream file(directory_ / "asked");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  Environment Job() const {
    return {{"PATH", directory_.string() + ":/usr/bin:/bin"}, {"SLURM_JOB_ID", "7"}};
  }

  // What follows a run of one node that ended so.
  Decision After(const Options& options, const JobResult& result, int dispensable_nodes = 0) {
    const Environment job = Job();
    Restarts restarts(options, job, dispensable_nodes);
    restarts.BeforeRun({"n1"});
    return restarts.AfterRun(result);
  }

  fs::path directory_;
};

JobResult EndedWith(int exit_code) {
  JobResult result;
  result.exit_code = exit_code;
  return result;
}

// As 25.11 says it.
TEST_F(RestartsInSlurm, SayThatAJobOfAnExpeditedRequeueIsHeldAfterAFailure) {
  Options options;
  options.max_restarts = 1;
  EXPECT_EQ(After(options, EndedWith(78)).reason,
            "not started again: exit code 78 would come again");
  Answer("ExpeditedRequeue=Yes");
  EXPECT_THAT(After(options, EndedWith(78)).reason,
              HasSubstr("; Slurm requeues this job and holds it"));
  EXPECT_THAT(After(options, EndedWith(75)).reason,
              StartsWith("Slurm requeues this job and holds it"));
  EXPECT_EQ(After(options, EndedWith(1)).reason, "starting again in 2 s, restart 1 of 1");
  EXPECT_EQ(After(options, EndedWith(0)).reason, "");
}

// Slurm shows the flag for as long as its signals are under way.
TEST_F(RestartsInSlurm, RequeueAJobThatIsBeingSignalledForAnotherOne) {
  Options options;
  options.requeue = 3;
  for (const char* state : {"RUNNING", "SIGNALING"}) {
    Answer("PreemptTime=2026-11-28T08:55:09 StartTime=2026-11-28T08:00:00", state);
    EXPECT_EQ(After(options, EndedWith(143)).next, Decision::Next::kRequeue) << state;
  }
  Answer("PreemptTime=2026-11-28T08:55:09 StartTime=2026-11-28T08:00:00", "COMPLETING");
  EXPECT_EQ(After(options, EndedWith(143)).reason, "the job is COMPLETING, so this is the end");
}

TEST_F(RestartsInSlurm, RejectWhatCannotBeRequeued) {
  struct Case {
    std::string job, count, answer, message;
  };
  const std::string whole = "JobId=7 JobState=RUNNING ";
  for (const Case& test : std::vector<Case>{
           {"", "", whole + "BatchFlag=1 Requeue=1", "--requeue needs a batch job of Slurm"},
           {"7", "", "", "--requeue: 'scontrol show job' does not answer"},
           {"7", "", whole + "BatchFlag=0 Requeue=1", "and this is one of salloc or srun"},
           {"7", "", whole + "BatchFlag=1 Requeue=0", "Slurm may not requeue this job"},
           {"7", "x", whole + "BatchFlag=1 Requeue=1", "SLURM_RESTART_COUNT='x' is not numeric"},
           {"7", "-1", whole + "BatchFlag=1 Requeue=1", "SLURM_RESTART_COUNT='-1' is not numeric"},
           {"7", "0", whole + "BatchFlag=1 Requeue=1", ""}}) {
    Write("answer", test.answer);
    Environment environment = Job();
    environment["SLURM_JOB_ID"] = test.job;
    if (!test.count.empty()) environment["SLURM_RESTART_COUNT"] = test.count;
    Options options;
    options.requeue = 1;
    try {
      Restarts(options, environment, /*dispensable_nodes=*/0);
      EXPECT_EQ(test.message, "");
    } catch (const LaunchError& error) {
      EXPECT_EQ(error.exit_code(), EX_CONFIG);
      EXPECT_THAT(error.what(), HasSubstr(test.message));
      EXPECT_NE(test.message, "") << error.what();
    }
  }
}

TEST_F(RestartsInSlurm, RequeueTheTaskOfAnArrayAlone) {
  Answer("ArrayJobId=5 ArrayTaskId=3");
  Options options;
  options.requeue = 4;
  options.progress_file = directory_ / "model";
  Environment job = Job();
  job["SLURM_RESTART_COUNT"] = "3";
  Restarts restarts(options, job, /*dispensable_nodes=*/0);
  EXPECT_EQ(restarts.count(), 3);
  restarts.BeforeRun({"n1"});
  Write("model", "");
  const Decision decision = restarts.AfterRun(EndedWith(75));
  EXPECT_EQ(decision.next, Decision::Next::kRequeue);
  EXPECT_EQ(decision.reason, "requeueing the job");
  EXPECT_THAT(Requested(), EndsWith("\nrequeue 5_3\n"));
  Write("refusal", "Invalid user id");
  fs::remove(directory_ / "model");
  restarts.BeforeRun({"n1"});
  Write("model", "");
  const Decision rejected = restarts.AfterRun(EndedWith(75));
  EXPECT_EQ(rejected.next, Decision::Next::kEnd);
  EXPECT_EQ(rejected.reason, "the job could not be requeued (Invalid user id): submit it again");
}

TEST_F(RestartsInSlurm, GoByWhatSlurmAndTheRanksSay) {
  using Next = Decision::Next;
  struct Case {
    std::string answer;
    std::function<void(Options&, JobResult&)> change;
    Next next;
    std::string reason;
  };
  const auto as_it_is = [](Options&, JobResult&) {};
  const auto requeue = [](Options& options, JobResult&) { options.requeue = 1; };
  const auto near_end = [](Options& options, JobResult&) { options.stop_before = 100; };
  const std::string again = "starting again in 2 s, restart 1 of 1";
  const std::string too_soon = "not started again: the job's time ends too soon for --stop-before";
  for (const Case& test : std::vector<Case>{
           {"", as_it_is, Next::kRestart, again},
           {"RunTime=00:01:00 TimeLimit=00:01:59", as_it_is, Next::kEnd,
            "not started again: the time limit of the job is 59 s away"},
           {"RunTime=00:01:00 TimeLimit=00:02:00", as_it_is, Next::kRestart, again},
           {"RunTime=00:01:00 TimeLimit=00:03:39", near_end, Next::kEnd, too_soon},
           {"RunTime=00:01:00 TimeLimit=00:03:40", near_end, Next::kRestart, again},
           {"", near_end, Next::kRestart, again},
           {"RunTime=00:01:00 TimeLimit=09:00:00",
            [](Options&options, JobResult&result) {
              options.stop_before = 100;
              result.notified_of_end = true;
            },
            Next::kEnd, too_soon},
           {"PreemptTime=2026-11-28T08:55:09 StartTime=2026-11-28T08:00:00", requeue,
            Next::kRequeue, "requeueing the job, whose nodes Slurm takes for another one"},
           {"PreemptTime=2026-11-28T08:55:09 StartTime=2026-11-28T08:56:00", requeue,
            Next::kRestart, again},
           {"",
            [](Options&options, JobResult&result) {
              options.max_restarts = 0;
              result.own_end = {Kind::kStartHung, 69, ""};
            },
            Next::kRestart, "starting again, once, since the start hung"},
           {"", [](Options&options, JobResult&) { options.max_restarts = 0; }, Next::kEnd, ""},
           {"", [](Options&, JobResult&result) { result.stop_requested = true; }, Next::kEnd, ""},
           {"",
            [](Options&, JobResult&result) {
              result.own_end = {Kind::kClosedOutput, 141, ""};
            },
            Next::kEnd, ""},
           {"",
            [](Options&, JobResult&result) {
              result.own_end = {Kind::kRejected, 78, ""};
            },
            Next::kEnd, "not started again: exit code 69 would come again"},
           {"",
            [](Options&, JobResult&result) {
              result.exit_code = 69;
              result.has_started = true;
            },
            Next::kRestart, again}}) {
    Answer(test.answer);
    Options options;
    options.max_restarts = 1;
    JobResult result = EndedWith(1);
    test.change(options, result);
    const Decision decision = After(options, result);
    EXPECT_EQ(decision.next, test.next) << test.answer << ": " << test.reason;
    EXPECT_EQ(decision.reason, test.reason) << test.answer;
  }
  Options options;
  options.max_restarts = 1;
  Answer("", "CANCELLED");
  EXPECT_EQ(After(options, EndedWith(1)).reason, "the job is CANCELLED, so this is the end");
}

// n2 is the job's at the start, n3 one on which ranks were to run: scontrol has n1 alone at last.
TEST_F(RestartsInSlurm, NameTheNodesThatTheJobHasLost) {
  Options options;
  options.max_restarts = 9;
  for (const int dispensable : {1, 2}) {
    Write("answer", "JobId=7 JobState=RUNNING NodeList=n[1-2]");
    const Environment job = Job();
    Restarts restarts(options, job, dispensable);
    restarts.BeforeRun({"n1", "n3", "n3"});
    Answer("");
    const Decision decision = restarts.AfterRun(Lost("n3"));
    EXPECT_EQ(restarts.lost_nodes(), (std::vector<std::string>{"n3", "n2"}));
    EXPECT_EQ(decision.reason,
              dispensable == 2
                  ? "starting again in 2 s, restart 1 of 9, without n3, n2"
                  : "not started again: a node was lost and no spare is left (--spare-nodes)");
    EXPECT_EQ(restarts.count(), dispensable - 1);
  }
}

// What is new is progress, and the third run without any is the last.
TEST_F(RestartsInSlurm, TellProgressByTheNewestFile) {
  const auto last_reason = [&](Options options, bool is_new) {
    options.max_restarts = 9;
    const Environment none;
    Restarts restarts(options, none, /*dispensable_nodes=*/0);
    std::string reason;
    for (int run = 1; run <= 3; ++run) {
      restarts.BeforeRun({});
      if (is_new) {
        const fs::path file = directory_ / "checkpoints" / ("step-" + std::to_string(run));
        std::ofstream(file) << run;
        fs::last_write_time(file, fs::file_time_type::clock::now() + std::chrono::seconds(run));
      }
      reason = restarts.AfterRun(EndedWith(1)).reason;
    }
    return reason;
  };
  fs::create_directory(directory_ / "checkpoints");
  Options named;
  named.progress_file = directory_ / "checkpoints";
  Options training;
  training.program = {"ddltraind", "--results_dir=" + directory_.string()};
  const std::string none = "not started again: 3 runs in a row made no progress (";
  for (int files = 0; files < 2; ++files) {  // an empty directory, and one with an old file
    EXPECT_EQ(last_reason(named, false), none + "nothing in --progress-file became newer)");
    EXPECT_EQ(last_reason(training, false),
              none + "no new checkpoint in " + (directory_ / "checkpoints").string() + ")");
    EXPECT_EQ(last_reason({}, false),
              none + "shorter than 60 s, and no --progress-file tells better)");
    EXPECT_EQ(last_reason(training, true), "starting again, restart 3 of 9");
  }
}

class NewestTimeTest : public testing::Test {
 protected:
  NewestTimeTest() : directory_(testing::TempDir() + "newest." + std::to_string(getpid())) {
    fs::create_directory(directory_);
  }
  ~NewestTimeTest() override { fs::remove_all(directory_); }

  fs::file_time_type Make(const std::string& name, int age_seconds) {
    std::ofstream(directory_ / name) << "x";
    const auto time = fs::file_time_type::clock::now() - std::chrono::seconds(age_seconds);
    fs::last_write_time(directory_ / name, time);
    return fs::last_write_time(directory_ / name);
  }

  fs::path directory_;
};

TEST_F(NewestTimeTest, IsThatOfAFile) {
  const auto time = Make("model.pt", 100);
  EXPECT_EQ(NewestTime(directory_ / "model.pt"), time);
}

TEST_F(NewestTimeTest, IsThatOfTheNewestEntryOfADirectory) {
  Make("step-1", 100);
  const auto time = Make("step-2", 50);
  Make("step-0", 200);
  EXPECT_EQ(NewestTime(directory_), time);
}

TEST_F(NewestTimeTest, PassesOverWhatIsHalfWritten) {
  const auto time = Make("step-1", 100);
  Make(".step-2", 10);
  EXPECT_EQ(NewestTime(directory_), time);
}

TEST_F(NewestTimeTest, IsNothingWhereThereIsNothing) {
  EXPECT_FALSE(NewestTime(directory_));
  EXPECT_FALSE(NewestTime(directory_ / "not-there"));
}

}  // namespace
}  // namespace launcher
