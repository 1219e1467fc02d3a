// SPDX-License-Identifier: Apache-2.0

#include "tests/support/test.h"
#include "tests/trainer/train/training_run.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/train/loop/training_session.h"

namespace trainer {
namespace {

// Runs of two ranks, of which rank 0 is asked by way of control_.
class LoopControlTest : public testing::Test {
 protected:
  LoopControlTest() { fs::create_directory(orders()); }
  fs::path orders() const { return directory_.path() / "orders"; }
  fs::path run() const { return directory_.path() / "run"; }
  static TrainConfig ConfigIn(const fs::path& directory) {
    TrainConfig config = SmallConfig(directory);
    config.checkpoint_every = 0;
    return config;
  }
  // Files are looked at once a second: here it is a second from one look to the next.
  RunRequestsOptions RequestsOf(RunControl& control) {
    return {.directory = orders(),
            .limit = {},
            .clock = [seconds = 0]() mutable { return TimePoint(std::chrono::seconds(++seconds)); },
            .log = MakeLogger(log_, 0, "off"),
            .control = &control};
  }
  // Asks once so many steps are done; the loop hears of it in the step after.
  void AskAfter(std::int64_t step, ControlCommand order) { at_step_ = {step, order}; }
  // `signalled`: rank 1 is told to stop when it asks for the so-maniest time.
  TrainResult Train(const std::function<void(int round)>& in_pause, int signalled = 0) {
    TrainResult of_root;
    RunRanks(2, [&](Communicator& communicator) {
      const bool is_root = communicator.rank() == 0;
      std::optional<RunRequests> requests;
      if (is_root) requests.emplace(RequestsOf(control_));
      std::ostringstream log_of_other;
      int round = 0;
      TrainConfig config = ConfigIn(run());
      config.mode = mode_;
      const TrainResult result = RunRank(
          config, communicator, is_root ? log_ : log_of_other, is_root ? 0 : signalled, "reference",
          is_root ? &*requests : nullptr,
          [&](std::int64_t step) {
            if (is_root && step == at_step_.first) control_.Take({at_step_.second});
          },
          {},
          [&] {
            if (is_root) in_pause(++round);
          });
      if (is_root) of_root = result;
    });
    return of_root;
  }

  const TemporaryDirectory directory_;
  std::ostringstream log_;
  RunControl control_{{}, 10};
  RunMode mode_ = RunMode::kTrain;
  std::pair<std::int64_t, ControlCommand> at_step_ = {-1, ControlCommand::kPause};
};

TEST_F(LoopControlTest, APausedTrainingGoesOnAndEndsBitEqual) {
  const fs::path other = directory_.path() / "other";
  RunTogether(2, ConfigIn(other));
  AskAfter(2, ControlCommand::kPause);
  int rounds = 0;
  const TrainResult result = Train([&](int round) {
    rounds = round;
    const RunStatus status = control_.status();
    EXPECT_EQ(status.state, RunState::kPaused);
    EXPECT_EQ(status.step, 3);
    if (round == 2 || round == 4) control_.Take({ControlCommand::kCheckpoint});
    if (round == 3) {
      EXPECT_EQ(status.checkpoint_step, 3);
      EXPECT_TRUE(exists(CheckpointDirectory(run(), 3)));
    }
    if (round == 5) {
      EXPECT_TRUE(status.requested.empty());
    }
    if (round == 6) control_.Take({ControlCommand::kResume});
  });
  EXPECT_EQ(rounds, 6);
  EXPECT_EQ(result.ending, Ending::kCompleted);
  EXPECT_EQ(control_.status().step, 6);
  EXPECT_EQ(control_.status().checkpoint_step, 6);
  for (const char* file : {kModelFile, kOptimizerFile}) {
    EXPECT_EQ(TensorsAt(run(), 6, file), TensorsAt(other, 6, file));
  }
  EXPECT_THAT(log_.str(), AllOf(HasSubstr("paused after step 3: "),
                                HasSubstr("resumed after step 3, paused for 0:00:0")));
}

TEST_F(LoopControlTest, EvaluatesOnceWhenItIsAskedToAndEndsBitEqual) {
  const fs::path other = directory_.path() / "other";
  RunTogether(2, ConfigIn(other));
  mode_ = RunMode::kTrainAndEvaluate;
  AskAfter(2, ControlCommand::kEvaluate);
  EXPECT_EQ(Train([](int) {}).ending, Ending::kCompleted);
  const std::string log = log_.str();
  const std::string line = "evaluation of 64 images";
  const std::size_t first = log.find(line);
  ASSERT_NE(first, std::string::npos);
  const std::size_t last = log.find(line, first + 1);  // at the end
  ASSERT_NE(last, std::string::npos);
  EXPECT_EQ(log.find(line, last + 1), std::string::npos);
  // The first of all is the best so far.
  EXPECT_TRUE(exists(CheckpointDirectory(run(), 3)));
  EXPECT_TRUE(control_.status().requested.empty());
  for (const char* file : {kModelFile, kOptimizerFile}) {
    EXPECT_EQ(TensorsAt(run(), 6, file), TensorsAt(other, 6, file));
  }
}

TEST_F(LoopControlTest, StopEndsAPauseWithACheckpoint) {
  AskAfter(1, ControlCommand::kPause);
  const TrainResult result = Train([&](int round) {
    if (round == 2) control_.Take({ControlCommand::kStop});
  });
  EXPECT_EQ(result.ending, Ending::kStopped);
  EXPECT_EQ(result.step, 2);
  EXPECT_EQ(control_.status().state, RunState::kStopping);
  EXPECT_EQ(control_.status().checkpoint_step, 2);
  EXPECT_TRUE(exists(CheckpointDirectory(run(), 2)));
}

TEST_F(LoopControlTest, AFileEndsAPauseAsWellAndIsRemovedThoughAllIsSaved) {
  AskAfter(1, ControlCommand::kPause);
  const TrainResult result = Train([&](int round) {
    if (round == 1) control_.Take({ControlCommand::kCheckpoint});
    if (round == 2) std::ofstream(orders() / "stop").close();
  });
  EXPECT_EQ(result.ending, Ending::kStopped);
  EXPECT_EQ(result.step, 2);
  EXPECT_TRUE(is_empty(orders()));
}

// Two steps and two rounds of the pause, or it would rest for ever.
TEST_F(LoopControlTest, ASignalOfAnotherRankEndsAPause) {
  AskAfter(1, ControlCommand::kPause);
  int rounds = 0;
  const TrainResult result = Train([&](int round) { rounds = round; }, /*signalled=*/4);
  EXPECT_EQ(result.ending, Ending::kStopped);
  EXPECT_EQ(result.step, 2);
  EXPECT_EQ(rounds, 2);
}

TEST_F(LoopControlTest, ACheckpointIsWrittenAfterTheStepAndOnce) {
  AskAfter(2, ControlCommand::kCheckpoint);
  const TrainResult result = Train([](int) { ADD_FAILURE(); });
  EXPECT_EQ(result.ending, Ending::kCompleted);
  EXPECT_TRUE(exists(CheckpointDirectory(run(), 3)));
  EXPECT_FALSE(exists(CheckpointDirectory(run(), 4)));
}

TEST_F(LoopControlTest, NobodyPausesAfterTheLastStep) {
  AskAfter(5, ControlCommand::kPause);
  EXPECT_EQ(Train([](int) { ADD_FAILURE(); }).step, 6);
}

TEST_F(LoopControlTest, TellsWhatItKnowsOfATrainingThatGoesOn) {
  Train([](int) {});
  RunControl control({}, 10);
  std::vector<std::int64_t> steps;
  RunRanks(2, [&](Communicator& communicator) {
    TrainConfig config = ConfigIn(run());
    config.schedule.num_iter = 8;
    std::ostringstream log;
    if (communicator.rank() != 0) {
      RunRank(config, communicator, log);
      return;
    }
    RunRequests requests(RequestsOf(control));
    RunRank(config, communicator, log, 0, "reference", &requests, [&](std::int64_t step) {
      const RunStatus status = control.status();
      EXPECT_EQ(status.step, step);
      EXPECT_EQ(status.steps, 8);
      EXPECT_EQ(status.checkpoint_step, 6);
      steps.push_back(step);
    });
  });
  EXPECT_THAT(steps, ElementsAre(6, 7));
  EXPECT_EQ(control.status().checkpoint_step, 8);
}

}  // namespace
}  // namespace trainer
