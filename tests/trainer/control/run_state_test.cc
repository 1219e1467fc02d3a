// SPDX-License-Identifier: Apache-2.0

#include "trainer/control/run_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace trainer {
namespace {

// By state and event: the first letters of the state after it, - where it cannot happen.
const std::map<std::string, std::string> kTransitions = {
    {"starting", "tr ch ev - st do fa"},
    {"training", "tr ch ev pa st do fa"},
    {"evaluating", "tr ch ev - st do fa"},
    {"checkpointing", "tr ch ev pa st do fa"},
    {"paused", "tr ch - pa st - fa"},
    {"stopping", "- st - - st do fa"},
    {"done", "- - - - - - -"},
    {"failed", "- - - - - - -"},
};

// "starting" and "stopping" begin alike; nothing leads to the first.
std::string ShortName(std::optional<RunState> state) {
  return state ? std::string(NameOf(*state).substr(0, 2)) : "-";
}

TEST(RunState, LeadsWhereItShould) {
  for (std::size_t i = 0; i < kRunStates; ++i) {
    const auto state = static_cast<RunState>(i);
    std::string row;
    for (std::size_t event = 0; event < kRunEvents; ++event) {
      const auto after = StateAfter(state, static_cast<RunEvent>(event));
      EXPECT_NE(after, RunState::kStarting);
      row += (event == 0 ? "" : " ") + ShortName(after);
    }
    EXPECT_EQ(row, kTransitions.at(std::string(NameOf(state)))) << NameOf(state);
  }
}

TEST(RunState, TakesOrdersWhileTheyCanBeObeyed) {
  const std::map<std::string, std::vector<std::string>> taken = {
      {"starting", {"pause", "resume", "checkpoint", "stop", "set", "stacks"}},
      {"training", {"pause", "resume", "checkpoint", "evaluate", "stop", "set", "stacks"}},
      {"evaluating", {"resume", "stop", "set", "stacks"}},
      {"checkpointing", {"pause", "resume", "checkpoint", "evaluate", "stop", "set", "stacks"}},
      {"paused", {"pause", "resume", "checkpoint", "stop", "set", "stacks"}},
      {"stopping", {"stop", "stacks"}},
      {"done", {}},
      {"failed", {}}};
  for (std::size_t i = 0; i < kRunStates; ++i) {
    const auto state = static_cast<RunState>(i);
    std::vector<std::string> orders;
    for (std::size_t order = 0; order < kControlOrders; ++order) {
      const auto which = static_cast<ControlOrder>(order);
      if (Takes(state, which)) orders.emplace_back(NameOf(which));
    }
    EXPECT_EQ(orders, taken.at(std::string(NameOf(state)))) << NameOf(state);
  }
}

TEST(RunState, EveryStateButTheLastTwoCanFailAndOnlyTheyAreEnds) {
  for (std::size_t i = 0; i < kRunStates; ++i) {
    const auto state = static_cast<RunState>(i);
    EXPECT_EQ(IsEnd(state), !StateAfter(state, RunEvent::kFailure)) << NameOf(state);
  }
  EXPECT_TRUE(IsEnd(RunState::kDone) && IsEnd(RunState::kFailed));
}

TEST(RunState, NamesAreReadBack) {
  for (std::size_t i = 0; i < kRunStates; ++i) {
    const auto state = static_cast<RunState>(i);
    EXPECT_EQ(ParseRunState(NameOf(state)), state);
  }
  for (std::size_t i = 0; i < kControlOrders; ++i) {
    const auto order = static_cast<ControlOrder>(i);
    EXPECT_EQ(ParseControlOrder(NameOf(order)), order);
  }
  EXPECT_EQ(ParseRunState("Training"), std::nullopt);
  EXPECT_EQ(ParseControlOrder("status"), std::nullopt);
}

}  // namespace
}  // namespace trainer
