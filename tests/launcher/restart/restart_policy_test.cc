// SPDX-License-Identifier: Apache-2.0

#include "launcher/restart/restart_policy.h"

#include <sysexits.h>

#include "tests/support/test.h"

namespace launcher {
namespace {

using Next = Decision::Next;

RunOutcome Ended(int exit_code, double seconds = 600) {
  RunOutcome end;
  end.exit_code = exit_code;
  end.seconds = seconds;
  return end;
}

Decision After(const RestartLimits& limits, const RunOutcome& end) {
  return RestartPolicy(limits).AfterRun(end);
}

TEST(RestartPolicy, DoesNothingThatWasNotAskedFor) {
  for (const int code : {EX_OK, 1, EX_DATAERR, EX_TEMPFAIL, 137}) {
    const Decision decision = After({}, Ended(code));
    EXPECT_EQ(decision.next, Next::kEnd) << code;
    EXPECT_EQ(decision.reason, "") << code;
  }
}

TEST(RestartPolicy, StartsAgainAsOftenAsAllowed) {
  RestartPolicy policy({.restarts = 2, .requeues = {}});
  EXPECT_EQ(policy.AfterRun(Ended(137)).reason, "starting again, restart 1 of 2");
  EXPECT_EQ(policy.AfterRun(Ended(1)).next, Next::kRestart);
  EXPECT_EQ(policy.restarts(), 2);
  const Decision last = policy.AfterRun(Ended(1));
  EXPECT_EQ(last.next, Next::kEnd);
  EXPECT_THAT(last.reason, HasSubstr("done 2 times already"));
}

TEST(RestartPolicy, StartsAgainOnceWhereThatIsAllowed) {
  RestartPolicy policy({.restarts = 1, .requeues = {}});
  EXPECT_EQ(policy.AfterRun(Ended(137)).next, Next::kRestart);
  EXPECT_EQ(policy.AfterRun(Ended(137)).next, Next::kEnd);
}

TEST(RestartPolicy, DoesNotRepeatAMistake) {
  for (const int code : {EX_USAGE, EX_DATAERR, EX_UNAVAILABLE, EX_CONFIG}) {
    const Decision decision = After({.restarts = 2, .requeues = {}}, Ended(code));
    EXPECT_EQ(decision.next, Next::kEnd) << code;
    EXPECT_THAT(decision.reason, HasSubstr("exit code " + std::to_string(code)));
  }
}

// Slurm would requeue it itself, however short it was and however often that was done, if ddlrun
// did not end before.
TEST(RestartPolicy, RequeuesAJobThatIsPreempted) {
  RestartLimits limits = {.restarts = 2, .requeues = 1, .requeued = 7};
  for (const int code : {1, EX_TEMPFAIL, 143}) {
    RunOutcome end = Ended(code, 5);
    end.is_preempted = true;
    EXPECT_EQ(After(limits, end).next, Next::kRequeue) << code;
    end.file_moved = false;
    EXPECT_EQ(After(limits, end).next, Next::kRequeue) << code;
    end.is_preempted = false;
    EXPECT_NE(After(limits, end).next, Next::kRequeue) << code;
  }
  RunOutcome end = Ended(EX_CONFIG, 5);
  end.is_preempted = true;
  EXPECT_EQ(After(limits, end).next, Next::kEnd);
  end.exit_code = EX_OK;
  EXPECT_EQ(After(limits, end).next, Next::kEnd);
  // It was not asked for.
  limits.requeues.reset();
  end.exit_code = EX_TEMPFAIL;
  EXPECT_EQ(After(limits, end).next, Next::kEnd);
}

TEST(RestartPolicy, TakesRanksThatCouldNotStartOnALostNodeForNoMistake) {
  RunOutcome end = Ended(EX_UNAVAILABLE);
  end.has_lost_node = true;
  EXPECT_EQ(After({.restarts = 2, .requeues = {}}, end).next, Next::kRestart);
}

TEST(RestartPolicy, TakesRanksThatHadStartedAndMissAPeerForNoMistake) {
  RunOutcome end = Ended(EX_UNAVAILABLE);
  end.has_started = true;
  EXPECT_EQ(After({.restarts = 2, .requeues = {}}, end).next, Next::kRestart);
  end.exit_code = EX_CONFIG;
  EXPECT_EQ(After({.restarts = 2, .requeues = {}}, end).next, Next::kEnd);
}

TEST(RestartPolicy, StartsAgainOnceByItselfAfterAStartThatHung) {
  RunOutcome end = Ended(EX_UNAVAILABLE, 300);
  end.start_hung = true;
  RestartPolicy policy({});
  const Decision first = policy.AfterRun(end);
  EXPECT_EQ(first.next, Next::kRestart);
  EXPECT_EQ(first.reason, "starting again, once, since the start hung");
  EXPECT_EQ(policy.restarts(), 1);
  const Decision second = policy.AfterRun(end);
  EXPECT_EQ(second.next, Next::kEnd);
  EXPECT_EQ(second.reason, "not started again: the start hung twice");
  // Not another failure of the second run, and not without its nodes.
  RestartPolicy other({});
  other.AfterRun(end);
  EXPECT_EQ(other.AfterRun(Ended(1)).next, Next::kEnd);
  end.has_nodes = false;
  EXPECT_EQ(After({}, end).next, Next::kEnd);
  end.has_nodes = true;
  end.stop_requested = true;
  EXPECT_EQ(After({}, end).next, Next::kEnd);
}

TEST(RestartPolicy, AStartThatHungCountsAmongTheRestartsThatWereAskedFor) {
  RunOutcome end = Ended(EX_UNAVAILABLE, 300);
  end.start_hung = true;
  RestartPolicy policy({.restarts = 2, .requeues = {}});
  EXPECT_EQ(policy.AfterRun(end).reason, "starting again in 2 s, restart 1 of 2");
  EXPECT_EQ(policy.AfterRun(end).reason, "starting again in 8 s, restart 2 of 2");
  EXPECT_EQ(policy.AfterRun(end).next, Next::kEnd);
}

// It lasts as long as it may, which says nothing.
TEST(RestartPolicy, AStartThatHungIsNoProgress) {
  RunOutcome end = Ended(EX_UNAVAILABLE, 300);
  end.start_hung = true;
  RestartPolicy policy({.restarts = 100, .requeues = {}});
  policy.AfterRun(end);
  policy.AfterRun(end);
  const Decision last = policy.AfterRun(end);
  EXPECT_EQ(last.next, Next::kEnd);
  EXPECT_THAT(last.reason, HasSubstr("3 runs in a row made no progress (its start hung)"));
  end.has_nodes = false;
  EXPECT_EQ(After({.requeues = 2}, end).next, Next::kEnd);
}

TEST(RestartPolicy, EndsWhenToldToStop) {
  for (const int code : {EX_TEMPFAIL, 143}) {
    RunOutcome end = Ended(code);
    end.stop_requested = true;
    EXPECT_EQ(After({.restarts = 2, .requeues = 2}, end).next, Next::kEnd) << code;
  }
}

TEST(RestartPolicy, EndsAfterThreeRunsWithoutProgress) {
  RestartPolicy policy({.restarts = 100, .requeues = {}});
  EXPECT_EQ(policy.AfterRun(Ended(1, 59)).next, Next::kRestart);
  EXPECT_EQ(policy.AfterRun(Ended(1, 59)).next, Next::kRestart);
  EXPECT_EQ(policy.AfterRun(Ended(1, 60)).next, Next::kRestart);  // counts anew
  EXPECT_EQ(policy.AfterRun(Ended(1, 59)).next, Next::kRestart);
  EXPECT_EQ(policy.AfterRun(Ended(1, 59)).next, Next::kRestart);
  const Decision last = policy.AfterRun(Ended(1, 59));
  EXPECT_EQ(last.next, Next::kEnd);
  EXPECT_THAT(last.reason, HasSubstr("3 runs in a row made no progress (shorter than 60 s"));
}

TEST(RestartPolicy, BelievesTheFileAndNotTheClock) {
  RunOutcome moved = Ended(1, 5);
  moved.file_moved = true;
  RunOutcome stood = Ended(1, 5000);
  stood.file_moved = false;
  RestartPolicy policy({.restarts = 100, .requeues = {}});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(policy.AfterRun(moved).next, Next::kRestart);
  policy.AfterRun(stood);
  policy.AfterRun(stood);
  EXPECT_THAT(policy.AfterRun(stood).reason, HasSubstr("nothing in --progress-file became newer"));
}

TEST(RestartPolicy, PausesLongerAfterEachRunWithoutProgress) {
  RestartPolicy policy({.restarts = 9, .requeues = {}});
  EXPECT_EQ(policy.AfterRun(Ended(1)).pause, 0);
  const Decision first = policy.AfterRun(Ended(1, 5));
  EXPECT_EQ(first.pause, 2);
  EXPECT_EQ(first.reason, "starting again in 2 s, restart 2 of 9");
  EXPECT_EQ(policy.AfterRun(Ended(1, 5)).pause, 8);
  EXPECT_EQ(policy.AfterRun(Ended(1)).pause, 0);
}

TEST(RestartPolicy, LooksAtTheTimeThatTheJobHasLeft) {
  RunOutcome end = Ended(1);
  end.seconds_left = 60;
  EXPECT_EQ(After({.restarts = 2, .requeues = {}}, end).next, Next::kRestart);
  end.seconds_left = 59.5;
  const Decision decision = After({.restarts = 2, .requeues = {}}, end);
  EXPECT_EQ(decision.next, Next::kEnd);
  EXPECT_EQ(decision.reason, "not started again: the time limit of the job is 59 s away");
  EXPECT_EQ(After({.restarts = 2, .requeues = 2}, end).next, Next::kRequeue);
}

TEST(RestartPolicy, NamesTheCheckpointsThatItLookedFor) {
  RunOutcome end = Ended(EX_TEMPFAIL, 600);
  end.file_moved = false;
  end.checkpoints = "results/checkpoints";
  EXPECT_THAT(After({.requeues = 2}, end).reason,
              HasSubstr("made no progress (no new checkpoint in results/checkpoints)"));
}

TEST(RestartPolicy, RequeuesAfterAnEarlyStop) {
  EXPECT_EQ(After({.requeues = 2, .requeued = 1}, Ended(EX_TEMPFAIL)).next, Next::kRequeue);
  EXPECT_EQ(After({.restarts = 5, .requeues = 2}, Ended(EX_TEMPFAIL)).next, Next::kRequeue);
  EXPECT_EQ(After({.requeues = 2}, Ended(1)).next, Next::kEnd);
}

TEST(RestartPolicy, DoesNotStartAgainTooNearToTheEnd) {
  RunOutcome end = Ended(1);
  EXPECT_EQ(After({.restarts = 2, .requeues = {}}, end).next, Next::kRestart);
  end.is_near_end = true;
  EXPECT_EQ(After({.restarts = 2, .requeues = 2}, end).next, Next::kRequeue);
  const Decision decision = After({.restarts = 2, .requeues = {}}, end);
  EXPECT_EQ(decision.next, Next::kEnd);
  EXPECT_EQ(decision.reason, "not started again: the job's time ends too soon for --stop-before");
}

TEST(RestartPolicy, RequeuesNoOftenerThanAllowed) {
  const Decision decision = After({.requeues = 2, .requeued = 2}, Ended(EX_TEMPFAIL));
  EXPECT_EQ(decision.next, Next::kEnd);
  EXPECT_THAT(decision.reason, HasSubstr("2 times already (--requeue=2)"));
}

TEST(RestartPolicy, RequeuesNoRunWithoutProgress) {
  const Decision decision = After({.requeues = 2}, Ended(EX_TEMPFAIL, 10));
  EXPECT_EQ(decision.next, Next::kEnd);
  EXPECT_THAT(decision.reason, HasSubstr("made no progress"));
}

TEST(RestartPolicy, RequeuesWhereTooFewNodesAreLeftAndElseEnds) {
  RunOutcome end = Ended(137);
  end.has_lost_node = true;
  end.has_nodes = false;
  EXPECT_EQ(After({.restarts = 2, .requeues = 2}, end).next, Next::kRequeue);
  const Decision decision = After({.restarts = 2, .requeues = {}}, end);
  EXPECT_EQ(decision.next, Next::kEnd);
  EXPECT_THAT(decision.reason, HasSubstr("no spare is left"));
}

TEST(RestartPolicy, SaysHowManyNodesAreLeftWhereFewerAreNotEnough) {
  RunOutcome end = Ended(137);
  end.has_lost_node = true;
  end.has_nodes = false;
  end.min_nodes = 3;
  end.nodes_left = 2;
  EXPECT_EQ(After({.restarts = 2, .requeues = {}}, end).reason,
            "not started again: 2 nodes are left, and --min-nodes is 3");
  end.min_nodes = 2;
  end.nodes_left = 1;
  EXPECT_EQ(After({.restarts = 2, .requeues = {}}, end).reason,
            "not started again: 1 node is left, and --min-nodes is 2");
  EXPECT_EQ(After({.restarts = 2, .requeues = 2}, end).next, Next::kRequeue);
  end.has_nodes = true;
  EXPECT_EQ(After({.restarts = 2, .requeues = 2}, end).next, Next::kRestart);
}

}  // namespace
}  // namespace launcher
