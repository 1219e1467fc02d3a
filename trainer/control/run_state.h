// SPDX-License-Identifier: Apache-2.0
//
// The life of a training as one table: its states, what leads from one to the next, and what may be
// asked for in each (doc/reference/control.md has it for users).  Pure.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace trainer {

enum class RunState : std::uint8_t {
  kStarting,
  kTraining,
  kEvaluating,
  kCheckpointing,
  kPaused,
  kStopping,  // was asked to stop, and writes its last checkpoint
  kDone,      // ended in order, at its end or stopped
  kFailed,
};
inline constexpr std::size_t kRunStates = 8;

// What happens to a training.
enum class RunEvent : std::uint8_t {
  kStep,  // begins, and so do the next three
  kCheckpoint,
  kEvaluation,
  kPause,
  kStop,  // all ranks have heard that they are to stop
  kEnd,
  kFailure,
};
inline constexpr std::size_t kRunEvents = 7;

// What people ask a training for.
enum class ControlCommand : std::uint8_t {
  kPause,
  kResume,
  kCheckpoint,
  kEvaluate,
  kStop,
  kSet,
  kStacks,  // where each rank is right now; obeyed at once, and not by the loop
};
inline constexpr std::size_t kControlCommands = 7;

// "training", ...
std::string_view NameOf(RunState state);
// nullopt for any other text.
std::optional<RunState> ParseRunState(std::string_view name);

// "pause", ...
std::string_view NameOf(ControlCommand command);
// nullopt for any other text.
std::optional<ControlCommand> ParseControlCommand(std::string_view name);

// The state that `event` leads to; nullopt where it cannot happen in `state`.
std::optional<RunState> StateAfter(RunState state, RunEvent event);

// Whether `command` can be obeyed in `state`, or soon after it.
bool Takes(RunState state, ControlCommand command);

// Whether the training is over.
bool IsEnd(RunState state);

}  // namespace trainer
