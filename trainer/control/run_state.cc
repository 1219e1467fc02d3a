// SPDX-License-Identifier: Apache-2.0

#include "trainer/control/run_state.h"

#include <array>

namespace trainer {
namespace {

using enum RunState;
using Next = std::optional<RunState>;

constexpr Next kNever;  // the event cannot happen

struct AfterEvents {
  Next step;
  Next checkpoint;
  Next evaluation;
  Next pause;
  Next stop;
  Next end;
  Next failure;
};

struct TakenOrders {
  bool pause;
  bool resume;
  bool checkpoint;
  bool evaluate;
  bool stop;
  bool set;
  bool stacks;
};

struct StateRow {
  std::string_view name;
  AfterEvents after;
  TakenOrders takes;
};

// By state.  The last checkpoint of a training that stops is part of its stopping; after any other
// one it says itself what it does next.
constexpr std::array<StateRow, kRunStates> kTable = {{
    {"starting",
     {.step = kTraining,
      .checkpoint = kCheckpointing,
      .evaluation = kEvaluating,
      .pause = kNever,
      .stop = kStopping,
      .end = kDone,
      .failure = kFailed},
     {.pause = true,
      .resume = true,
      .checkpoint = true,
      .evaluate = false,
      .stop = true,
      .set = true,
      .stacks = true}},
    {"training",
     {.step = kTraining,
      .checkpoint = kCheckpointing,
      .evaluation = kEvaluating,
      .pause = kPaused,
      .stop = kStopping,
      .end = kDone,
      .failure = kFailed},
     {.pause = true,
      .resume = true,
      .checkpoint = true,
      .evaluate = true,
      .stop = true,
      .set = true,
      .stacks = true}},
    {"evaluating",
     {.step = kTraining,
      .checkpoint = kCheckpointing,
      .evaluation = kEvaluating,
      .pause = kNever,
      .stop = kStopping,
      .end = kDone,
      .failure = kFailed},
     {.pause = false,
      .resume = true,
      .checkpoint = false,
      .evaluate = false,
      .stop = true,
      .set = true,
      .stacks = true}},
    {"checkpointing",
     {.step = kTraining,
      .checkpoint = kCheckpointing,
      .evaluation = kEvaluating,
      .pause = kPaused,
      .stop = kStopping,
      .end = kDone,
      .failure = kFailed},
     {.pause = true,
      .resume = true,
      .checkpoint = true,
      .evaluate = true,
      .stop = true,
      .set = true,
      .stacks = true}},
    {"paused",
     {.step = kTraining,
      .checkpoint = kCheckpointing,
      .evaluation = kNever,
      .pause = kPaused,
      .stop = kStopping,
      .end = kNever,
      .failure = kFailed},
     {.pause = true,
      .resume = true,
      .checkpoint = true,
      .evaluate = false,
      .stop = true,
      .set = true,
      .stacks = true}},
    {"stopping",
     {.step = kNever,
      .checkpoint = kStopping,
      .evaluation = kNever,
      .pause = kNever,
      .stop = kStopping,
      .end = kDone,
      .failure = kFailed},
     {.pause = false,
      .resume = false,
      .checkpoint = false,
      .evaluate = false,
      .stop = true,
      .set = false,
      .stacks = true}},
    {"done", {}, {}},
    {"failed", {}, {}},
}};

constexpr std::array<std::string_view, kControlOrders> kOrderNames = {
    "pause", "resume", "checkpoint", "evaluate", "stop", "set", "stacks"};

const StateRow& RowOf(RunState state) { return kTable[static_cast<std::size_t>(state)]; }

}  // namespace

std::string_view NameOf(RunState state) { return RowOf(state).name; }

std::optional<RunState> ParseRunState(std::string_view name) {
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (kTable[i].name == name) return static_cast<RunState>(i);
  }
  return std::nullopt;
}

std::string_view NameOf(ControlOrder order) { return kOrderNames[static_cast<std::size_t>(order)]; }

std::optional<ControlOrder> ParseControlOrder(std::string_view name) {
  for (std::size_t i = 0; i < kOrderNames.size(); ++i) {
    if (kOrderNames[i] == name) return static_cast<ControlOrder>(i);
  }
  return std::nullopt;
}

std::optional<RunState> StateAfter(RunState state, RunEvent event) {
  const AfterEvents& after = RowOf(state).after;
  switch (event) {
    case RunEvent::kStep:
      return after.step;
    case RunEvent::kCheckpoint:
      return after.checkpoint;
    case RunEvent::kEvaluation:
      return after.evaluation;
    case RunEvent::kPause:
      return after.pause;
    case RunEvent::kStop:
      return after.stop;
    case RunEvent::kEnd:
      return after.end;
    case RunEvent::kFailure:
      break;
  }
  return after.failure;
}

bool Takes(RunState state, ControlOrder order) {
  const TakenOrders& takes = RowOf(state).takes;
  switch (order) {
    case ControlOrder::kPause:
      return takes.pause;
    case ControlOrder::kResume:
      return takes.resume;
    case ControlOrder::kCheckpoint:
      return takes.checkpoint;
    case ControlOrder::kEvaluate:
      return takes.evaluate;
    case ControlOrder::kStop:
      return takes.stop;
    case ControlOrder::kSet:
      return takes.set;
    case ControlOrder::kStacks:
      break;
  }
  return takes.stacks;
}

bool IsEnd(RunState state) { return state == kDone || state == kFailed; }

}  // namespace trainer
