// SPDX-License-Identifier: Apache-2.0

#include "trainer/control/run_state.h"

#include <array>

namespace trainer {
namespace {

using enum RunState;
using Next = std::optional<RunState>;

constexpr Next kNever;  // the event cannot happen

constexpr std::array<std::string_view, kRunStates> kStateNames = {
    "starting", "training", "evaluating", "checkpointing", "paused", "stopping", "done", "failed"};

// clang-format off

// By state and event.  The last checkpoint of a training that stops is part of its stopping; after
// any other one it says itself what it does next.
constexpr Next kAfter[kRunStates][kRunEvents] = {
  //                   step       checkpoint      evaluation   pause    stop       end     failure
  /* starting      */ {kTraining, kCheckpointing, kEvaluating, kNever,  kStopping, kDone,  kFailed},
  /* training      */ {kTraining, kCheckpointing, kEvaluating, kPaused, kStopping, kDone,  kFailed},
  /* evaluating    */ {kTraining, kCheckpointing, kEvaluating, kNever,  kStopping, kDone,  kFailed},
  /* checkpointing */ {kTraining, kCheckpointing, kEvaluating, kPaused, kStopping, kDone,  kFailed},
  /* paused        */ {kTraining, kCheckpointing, kNever,      kPaused, kStopping, kNever, kFailed},
  /* stopping      */ {kNever,    kStopping,      kNever,      kNever,  kStopping, kDone,  kFailed},
  /* done          */ {kNever,    kNever,         kNever,      kNever,  kNever,    kNever, kNever},
  /* failed        */ {kNever,    kNever,         kNever,      kNever,  kNever,    kNever, kNever}};

// By state and order.
constexpr bool kTakes[kRunStates][kControlCommands] = {
  //                   pause  resume checkpoint evaluate stop   set    stacks
  /* starting      */ {true,  true,  true,      false,   true,  true,  true},
  /* training      */ {true,  true,  true,      true,    true,  true,  true},
  /* evaluating    */ {false, true,  false,     false,   true,  true,  true},
  /* checkpointing */ {true,  true,  true,      true,    true,  true,  true},
  /* paused        */ {true,  true,  true,      false,   true,  true,  true},
  /* stopping      */ {false, false, false,     false,   true,  false, true},
  /* done          */ {false, false, false,     false,   false, false, false},
  /* failed        */ {false, false, false,     false,   false, false, false}};

// clang-format on

constexpr std::array<std::string_view, kControlCommands> kCommandNames = {
    "pause", "resume", "checkpoint", "evaluate", "stop", "set", "stacks"};

template <std::size_t kCount>
std::optional<std::size_t> IndexOf(const std::array<std::string_view, kCount>& names,
                                   std::string_view name) {
  for (std::size_t i = 0; i < kCount; ++i) {
    if (names[i] == name) return i;
  }
  return std::nullopt;
}

template <typename Enum>
std::size_t Index(Enum value) {
  return static_cast<std::size_t>(value);
}

}  // namespace

std::string_view NameOf(RunState state) { return kStateNames[Index(state)]; }

std::optional<RunState> ParseRunState(std::string_view name) {
  const auto i = IndexOf(kStateNames, name);
  return i ? std::optional(static_cast<RunState>(*i)) : std::nullopt;
}

std::string_view NameOf(ControlCommand command) { return kCommandNames[Index(command)]; }

std::optional<ControlCommand> ParseControlCommand(std::string_view name) {
  const auto i = IndexOf(kCommandNames, name);
  return i ? std::optional(static_cast<ControlCommand>(*i)) : std::nullopt;
}

std::optional<RunState> StateAfter(RunState state, RunEvent event) {
  return kAfter[Index(state)][Index(event)];
}

bool Takes(RunState state, ControlCommand command) { return kTakes[Index(state)][Index(command)]; }

bool IsEnd(RunState state) { return state == kDone || state == kFailed; }

}  // namespace trainer
