// SPDX-License-Identifier: Apache-2.0

#include "trainer/control/run_control.h"

#include <atomic>
#include <thread>

#include "tests/support/test.h"

namespace trainer {
namespace {

class RunControlTest : public testing::Test {
 protected:
  RunControlTest() {
    control_.StartTraining(
        {.step = 100, .epoch = 1, .steps = 200, .epochs = 4, .global_batch = 64});
  }
  // One step that takes so many seconds.
  void Step(double seconds) {
    control_.OnEvent(RunEvent::kStep);
    now_ += seconds;
    RunControl::Step step = {.steps = ++steps_, .epoch = 2, .loss = 1.5, .times = {}};
    step.times.step = seconds;
    step.times[StepPhase::kForward] = seconds / 2;
    control_.OnStepEnd(step);
  }
  std::string Ask(ControlCommand command) { return control_.Take({command, 3}).rejection; }
  std::vector<ControlCommand> requested() const { return control_.status().requested; }

  double now_ = 1000;
  std::int64_t steps_ = 100;
  RunControl control_{
      {.ranks = 2, .host = "n1", .pid = 7, .version = "1", .job = ""}, 10, [this] { return now_; }};
};

TEST_F(RunControlTest, SaysWhatIsKnownBeforeTheFirstStep) {
  const RunStatus status = control_.status();
  EXPECT_EQ(status.state, RunState::kStarting);
  EXPECT_EQ(status.step, 100);
  EXPECT_EQ(status.epoch, 1);
  EXPECT_EQ(status.steps, 200);
  EXPECT_EQ(status.epochs, 4);
  EXPECT_TRUE(std::isnan(status.loss) && std::isnan(status.images_per_second) &&
              std::isnan(status.eta_seconds));
  EXPECT_EQ(status.checkpoint_step, -1);
  EXPECT_EQ(status.identity.host, "n1");
  EXPECT_THAT(status.requested, IsEmpty());
}

TEST_F(RunControlTest, SpeedIsThatOfTheLastStepsAndTheRestIsReckonedFromAll) {
  for (int i = 0; i < 20; ++i) Step(1);
  for (std::size_t i = 0; i < RunControl::kRecentSteps; ++i) Step(2);
  const RunStatus status = control_.status();
  EXPECT_EQ(status.state, RunState::kTraining);
  EXPECT_EQ(status.step, 140);
  EXPECT_EQ(status.epoch, 2);
  EXPECT_EQ(status.loss, 1.5);
  EXPECT_DOUBLE_EQ(status.images_per_second, 32);
  EXPECT_DOUBLE_EQ(status.times.step, 2);
  EXPECT_DOUBLE_EQ(status.times[StepPhase::kForward], 1);
  EXPECT_DOUBLE_EQ(status.eta_seconds, 60 * 1.5);
}

TEST_F(RunControlTest, WhatLiesBetweenStepsCountsForTheRestButAPauseDoesNot) {
  Step(1);
  control_.OnEvent(RunEvent::kCheckpoint);
  now_ += 1;
  Step(1);
  EXPECT_DOUBLE_EQ(control_.status().eta_seconds, 98 * 1.5);
  control_.OnEvent(RunEvent::kPause);
  now_ += 1000;
  EXPECT_EQ(control_.status().state, RunState::kPaused);
  EXPECT_DOUBLE_EQ(control_.status().eta_seconds, 98 * 1.5);
  Step(3);
  EXPECT_DOUBLE_EQ(control_.status().eta_seconds, 97 * 2);
}

TEST_F(RunControlTest, APauseIsAskedForUntilItIsOneAndLastsUntilResume) {
  Step(1);
  EXPECT_EQ(Ask(ControlCommand::kPause), "");
  EXPECT_THAT(requested(), ElementsAre(ControlCommand::kPause));
  EXPECT_TRUE(control_.Look().pause);
  control_.OnEvent(RunEvent::kPause);
  EXPECT_THAT(requested(), IsEmpty());
  EXPECT_TRUE(control_.Look().pause);
  EXPECT_EQ(Ask(ControlCommand::kPause), "");
  EXPECT_EQ(Ask(ControlCommand::kResume), "");
  EXPECT_THAT(requested(), ElementsAre(ControlCommand::kResume));
  EXPECT_FALSE(control_.Look().pause);
  Step(1);
  EXPECT_THAT(requested(), IsEmpty());
  EXPECT_EQ(Ask(ControlCommand::kResume), "it is not paused: its state is training");
}

TEST_F(RunControlTest, APauseThatHasNotBegunIsCalledOff) {
  Ask(ControlCommand::kPause);
  EXPECT_EQ(Ask(ControlCommand::kResume), "");
  EXPECT_FALSE(control_.Look().pause);
}

TEST_F(RunControlTest, ACheckpointIsAskedForUntilOneIsWrittenThatKnewOfIt) {
  EXPECT_EQ(Ask(ControlCommand::kCheckpoint), "");
  control_.AckCheckpoint();  // one that was under way
  EXPECT_THAT(requested(), ElementsAre(ControlCommand::kCheckpoint));
  EXPECT_TRUE(control_.Look().save);
  EXPECT_TRUE(control_.Look().save);
  control_.OnCheckpointSaved(101);
  EXPECT_EQ(Ask(ControlCommand::kCheckpoint), "");
  control_.AckCheckpoint();
  EXPECT_TRUE(control_.Look().save);
  control_.AckCheckpoint();
  EXPECT_FALSE(control_.Look().save);
  EXPECT_THAT(requested(), IsEmpty());
  EXPECT_EQ(control_.status().checkpoint_step, 101);
}

TEST_F(RunControlTest, AnEvaluationIsAskedForUntilOneIsDoneThatKnewOfIt) {
  Step(1);
  EXPECT_EQ(Ask(ControlCommand::kEvaluate),
            "it has no images to evaluate with: --mode=train_and_evaluate has");
  EXPECT_FALSE(control_.Look().evaluate);
  control_.StartTraining({.steps = 200, .global_batch = 64, .can_evaluate = true});
  EXPECT_EQ(Ask(ControlCommand::kEvaluate), "");
  control_.Evaluated();  // one that was under way
  EXPECT_THAT(requested(), ElementsAre(ControlCommand::kEvaluate));
  EXPECT_TRUE(control_.Look().evaluate);
  control_.AckCheckpoint();  // a checkpoint
  EXPECT_TRUE(control_.Look().evaluate);
  control_.Evaluated();
  EXPECT_FALSE(control_.Look().evaluate);
  EXPECT_THAT(requested(), IsEmpty());
}

TEST_F(RunControlTest, StopStaysAskedForToTheEnd) {
  Step(1);
  EXPECT_EQ(Ask(ControlCommand::kStop), "");
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(control_.Look().stop);
  control_.OnEvent(RunEvent::kStop);
  EXPECT_THAT(requested(), ElementsAre(ControlCommand::kStop));
  EXPECT_EQ(Ask(ControlCommand::kPause),
            "pause is not possible while the training is in the state stopping");
  control_.OnEvent(RunEvent::kCheckpoint);
  EXPECT_EQ(control_.status().state, RunState::kStopping);
  control_.OnEvent(RunEvent::kEnd);
  EXPECT_EQ(control_.status().state, RunState::kDone);
  EXPECT_THAT(requested(), IsEmpty());
  EXPECT_NE(Ask(ControlCommand::kStop), "");
}

TEST_F(RunControlTest, ASettingCountsAtOnce) {
  EXPECT_EQ(control_.display_every(), 10);
  const ControlAnswer answer = control_.Take({ControlCommand::kSet, 3});
  EXPECT_EQ(answer.rejection, "");
  EXPECT_EQ(answer.status.display_every, 3);
  EXPECT_EQ(control_.display_every(), 3);
}

TEST_F(RunControlTest, StacksAreAskedForAtOnceAndTheLoopHearsNothing) {
  Step(1);
  const ControlAnswer without = control_.Take({ControlCommand::kStacks});
  EXPECT_EQ(without.rejection, "its ranks cannot be asked for their stacks: its log says why");
  EXPECT_EQ(without.stack_dump_command, 0U);
  std::uint64_t command = 40;
  control_.OnStacks([&] { return ++command; });
  const ControlAnswer answer = control_.Take({ControlCommand::kStacks});
  EXPECT_EQ(answer.rejection, "");
  EXPECT_EQ(answer.stack_dump_command, 41U);
  EXPECT_THAT(requested(), IsEmpty());
  const Requests pending = control_.Look();
  EXPECT_FALSE(pending.stop || pending.save || pending.pause || pending.evaluate);
  control_.OnEvent(RunEvent::kFailure);
  EXPECT_EQ(control_.Take({ControlCommand::kStacks}).rejection,
            "stacks is not possible while the training is in the state failed");
  EXPECT_EQ(command, 41U);
}

TEST_F(RunControlTest, TellsTheLoadsOfTheRanks) {
  EXPECT_THAT(control_.status().loads, IsEmpty());
  control_.SetHosts({"n1", "n2"});
  control_.OnRankMetrics(std::vector<double>{2, 3}, {});
  const RunStatus status = control_.status();
  EXPECT_EQ(status.median_busy_seconds, 2);
  ASSERT_EQ(status.loads.size(), 2U);
  EXPECT_EQ(status.loads[1].host, "n2");
  EXPECT_EQ(status.loads[1].busy_seconds, 3);
}

TEST_F(RunControlTest, ToAskForTheStatusChangesNothing) {
  Step(1);
  control_.Take({});
  const Requests pending = control_.Look();
  EXPECT_FALSE(pending.stop || pending.save || pending.pause);
}

TEST_F(RunControlTest, WhatCannotHappenChangesNothing) {
  control_.OnEvent(RunEvent::kPause);
  EXPECT_EQ(control_.status().state, RunState::kStarting);
  control_.OnEvent(RunEvent::kFailure);
  control_.OnEvent(RunEvent::kStep);
  EXPECT_EQ(control_.status().state, RunState::kFailed);
}

// For ThreadSanitizer.
TEST_F(RunControlTest, IsAskedWhileTheLoopRuns) {
  std::atomic<bool> is_over = false;
  std::jthread asking([&] {
    while (!is_over) {
      control_.Take({});
      control_.Take({ControlCommand::kCheckpoint});
      control_.Take({ControlCommand::kSet, 4});
    }
  });
  for (int i = 0; i < 1000; ++i) {
    Step(1);
    if (control_.Look().save) control_.AckCheckpoint();
    control_.display_every();
  }
  is_over = true;
  asking.join();
  EXPECT_EQ(control_.status().step, 1100);
}

}  // namespace
}  // namespace trainer
