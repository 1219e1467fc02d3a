// SPDX-License-Identifier: Apache-2.0

#include "tests/support/test.h"
#include "tests/trainer/train/training_run.h"
#include "trainer/control/run_control.h"

namespace trainer {
namespace {

class RunRequestsTest : public testing::Test {
 protected:
  static constexpr double kStart = 1'000'000;

  RunRequests Make(std::optional<TimeLimit> limit = {}) {
    return RunRequests({.directory = directory_.path(),
                        .limit = std::move(limit),
                        .clock = [this] { return TimePoint(std::chrono::milliseconds(now_)); },
                        .log = MakeLogger(log_, 0, "info")});
  }
  fs::path File(const std::string& name) const { return directory_.path() / name; }
  void Write(const std::string& name, const std::string& text = "") {
    std::ofstream(File(name)) << text;
  }
  void Pass(double seconds) { now_ += static_cast<std::int64_t>(seconds * 1000); }

  const TemporaryDirectory directory_;
  std::int64_t now_ = static_cast<std::int64_t>(kStart) * 1000;  // in milliseconds
  std::ostringstream log_;
};

TEST_F(RunRequestsTest, AsksForNothingByItself) {
  RunRequests requests = Make();
  for (int i = 0; i < 5; ++i) {
    const Requests requested = requests.Look();
    EXPECT_FALSE(requested.stop || requested.save);
    Pass(1);
  }
  EXPECT_EQ(log_.str(), "");
  EXPECT_EQ(requests.why(), "");
}

TEST_F(RunRequestsTest, AFileAsksForACheckpointUntilItIsWritten) {
  RunRequests requests = Make();
  Write("checkpoint");
  for (int i = 0; i < 2; ++i) {
    const Requests requested = requests.Look();
    EXPECT_TRUE(requested.save && !requested.stop);
  }
  requests.BeginSave();
  EXPECT_FALSE(requests.Look().save);
  EXPECT_TRUE(exists(File("checkpoint")));
  requests.OnCheckpointSaved(1, 1);
  EXPECT_FALSE(exists(File("checkpoint")));
  Pass(1);
  EXPECT_FALSE(requests.Look().save);
  Write("checkpoint");
  Pass(1);
  EXPECT_TRUE(requests.Look().save);
}

TEST_F(RunRequestsTest, ACheckpointThatBeganBeforeIsNotTheOneThatIsAskedFor) {
  RunRequests requests = Make();
  requests.BeginSave();
  Write("checkpoint");
  Write("stop");
  EXPECT_TRUE(requests.Look().save);
  requests.OnCheckpointSaved(1, 1);
  EXPECT_TRUE(exists(File("checkpoint")) && exists(File("stop")));
  EXPECT_TRUE(requests.Look().save);
  requests.BeginSave();
  requests.OnCheckpointSaved(1, 1);
  EXPECT_TRUE(fs::is_empty(directory_.path()));
}

TEST_F(RunRequestsTest, AFileAsksToStop) {
  RunRequests requests = Make();
  Write("stop");
  EXPECT_TRUE(requests.Look().stop);
  EXPECT_EQ(requests.why(), "by the file " + File("stop").string());
  requests.BeginSave();
  requests.OnCheckpointSaved(1, 1);
  EXPECT_FALSE(exists(File("stop")));
  EXPECT_TRUE(requests.Look().stop);
}

TEST_F(RunRequestsTest, LooksAtFilesOnceASecond) {
  RunRequests requests = Make();
  EXPECT_FALSE(requests.Look().stop);
  Write("stop");
  Pass(0.9);
  EXPECT_FALSE(requests.Look().stop);
  Pass(0.1);
  EXPECT_TRUE(requests.Look().stop);
}

TEST_F(RunRequestsTest, AClockThatIsSetBackDoesNotHideFiles) {
  RunRequests requests = Make();
  EXPECT_FALSE(requests.Look().save);
  Write("checkpoint");
  Pass(-3600);
  EXPECT_TRUE(requests.Look().save);
}

TEST_F(RunRequestsTest, RemovesOrdersFromBeforeTheStart) {
  Write("stop");
  Write("checkpoint");
  RunRequests requests = Make();
  EXPECT_THAT(log_.str(), AllOf(HasSubstr(File("stop").string() + " is from before the start: it "
                                                                  "is removed and not obeyed"),
                                HasSubstr(File("checkpoint").string() + " is from before")));
  EXPECT_TRUE(fs::is_empty(directory_.path()));
  EXPECT_FALSE(requests.Look().stop);
}

// TensorFlow's checkpoint, somebody's directory or link.
TEST_F(RunRequestsTest, LeavesWhatIsNoEmptyFileAsItIs) {
  Write("checkpoint", "model_checkpoint_path: \"model.ckpt-1000\"\n");
  fs::create_directory(File("stop"));
  RunRequests requests = Make();
  for (int i = 0; i < 3; ++i) {
    const Requests requested = requests.Look();
    EXPECT_FALSE(requested.stop || requested.save);
    Pass(1);
  }
  requests.BeginSave();
  requests.OnCheckpointSaved(1, 1);
  EXPECT_TRUE(exists(File("checkpoint")) && exists(File("stop")));
  const std::string warning = File("checkpoint").string() + " is not an empty file";
  EXPECT_THAT(log_.str(), AllOf(HasSubstr(warning), HasSubstr(File("stop").string() + " is not")));
  EXPECT_EQ(log_.str().find(warning), log_.str().rfind(warning));
}

TEST_F(RunRequestsTest, StopsBeforeTheEndOfTheTimeAndSaysWhen) {
  RunRequests requests = Make(TimeLimit(kStart, kStart + 3600, {}));
  EXPECT_THAT(log_.str(), AllOf(HasSubstr("the job's time ends at "),
                                HasSubstr(", 60 s before (--stop_margin)")));
  Pass(3530);
  EXPECT_FALSE(requests.Look().stop);
  requests.StepTook(10);
  EXPECT_TRUE(requests.Look().stop);
  EXPECT_EQ(requests.why(), "for the end of the job's time");
  EXPECT_THAT(log_.str(), HasSubstr("the job's time ends in 70 s (SLURM_JOB_END_TIME): stopping, "
                                    "since a checkpoint and a step are given 70 s"));
}

TEST_F(RunRequestsTest, SaysItAgainWhereCheckpointsTakeLonger) {
  RunRequests requests = Make(TimeLimit(kStart, kStart + 3600, {}));
  log_.str("");
  requests.OnCheckpointSaved(1, 100);
  EXPECT_THAT(log_.str(), HasSubstr(", 210 s before (--stop_margin)"));
  log_.str("");
  requests.OnCheckpointSaved(2, 101);
  EXPECT_EQ(log_.str(), "");
}

// What the loop makes of it, with one rank of two that asks.
TEST_F(RunRequestsTest, AllRanksSaveAndStopAfterTheSameSteps) {
  const TemporaryDirectory run;
  TrainConfig config = SmallConfig(run.path());
  config.schedule.num_iter = 100;
  RunRequests requests = Make();
  Write("checkpoint");
  RunRanks(2, [&](Communicator& communicator) {
    std::ostringstream log;
    const bool is_root = communicator.rank() == 0;
    const TrainResult result = RunRank(config, communicator, log, 0, "reference",
                                       is_root ? &requests : nullptr, [&](std::int64_t step) {
                                         if (!is_root) return;
                                         Pass(1);
                                         if (step == 5) Write("stop");
                                       });
    EXPECT_EQ(result.ending, Ending::kStopped);
    EXPECT_EQ(result.step, 6);
  });
  EXPECT_TRUE(exists(CheckpointDirectory(run.path(), 1)));
  EXPECT_TRUE(exists(CheckpointDirectory(run.path(), 6)));
  EXPECT_FALSE(exists(CheckpointDirectory(run.path(), 2)));
  EXPECT_TRUE(fs::is_empty(directory_.path()));
}

// Each second, and before a checkpoint is written.
TEST_F(RunRequestsTest, RenewsTheLockOfTheDirectory) {
  class CountingLock : public RunLock {
   public:
    void Renew() override { ++count; }
    int count = 0;
  };
  CountingLock lock;
  RunRequests requests({.directory = directory_.path(),
                        .limit = {},
                        .clock = [this] { return TimePoint(std::chrono::milliseconds(now_)); },
                        .log = MakeLogger(log_, 0, "info"),
                        .lock = &lock});
  requests.Look();
  Pass(0.5);
  requests.Look();
  EXPECT_EQ(lock.count, 1);
  Pass(0.6);
  requests.Look();
  EXPECT_EQ(lock.count, 2);
  requests.BeginSave();
  EXPECT_EQ(lock.count, 3);
}

}  // namespace
}  // namespace trainer
