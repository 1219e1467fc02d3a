// SPDX-License-Identifier: Apache-2.0
//
// What a training says of itself when it is asked, as a value and as one line of JSON.  Pure.

#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/json.h"
#include "trainer/telemetry/meters/device_state.h"
#include "trainer/telemetry/meters/step_timer.h"

namespace trainer {

// Of messages, addresses and statuses, whose lengths their readers bound.
inline constexpr support::JsonLimits kMessageLimits = {
    .bytes = 1u << 20, .depth = 6, .values = 100'000};

// How long each rank is busy in a step, what of it it waits for its data, and how its device fares.
// Not thread-safe.

// What a rank says of itself now and then; beside it all hear its own seconds in each step.
struct RankMetrics {
  double input_wait_seconds = 0;  // mean of a step since it has said so last
  DeviceState device;
  bool is_known = false;  // it has said something
};

struct RankLoad {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  int rank = 0;
  std::string host = {};                 // "": not known
  double busy_seconds = kUnknown;        // in a step, busy itself, its input wait included
  double input_wait_seconds = kUnknown;  // of these
  std::optional<int> gpu_percent = {};   // of the time: its GPU computes
  std::optional<int> compute_mhz = {};   // of its GPU, or of processor cores
  std::optional<int> celsius = {};
};

class RankLoads {
 public:
  static constexpr double kSteps = 20;     // that means are taken over, the newest weighing most
  static constexpr std::size_t kMax = 64;  // that are told
  static constexpr std::size_t kLetters = 63;  // of a host; what is longer is cut

  void SetHosts(std::vector<std::string> hosts) { hosts_ = std::move(hosts); }
  // After a step, by rank; seconds that are not above 0 are not known.
  void Add(std::span<const double> busy_seconds, std::span<const RankMetrics> said);

  // By rank; of more than kMax the slowest.  Those of which nothing is known are left out.
  std::vector<RankLoad> Slowest() const;
  // Of the own seconds of all; the lower of the middle two.  Not a number where none is known.
  double Median() const;

 private:
  struct Rank {
    double seconds = 0;
    double steps = 0;
    RankMetrics said;
  };

  std::vector<std::string> hosts_;
  std::vector<Rank> ranks_;
};

// The life of a training as one table: its states, what leads from one to the next, and what may be
// asked for in each (doc/reference/control.md has it for users).  Pure.
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

// What does not change while it runs.
struct RunIdentity {
  int ranks = 1;
  std::string host;  // of rank 0
  std::int64_t pid = 0;
  std::string version;  // of ddltraind
  std::string job;      // Slurm's number of it, or ""
};

struct RunStatus {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  RunState state = RunState::kStarting;
  std::int64_t step = 0;                  // updates done, those before a resume included
  std::int64_t steps = 0;                 // of the whole training
  std::int64_t epoch = 0;                 // the one under way, from 0
  std::int64_t epochs = 0;                // 0: the training is counted in steps
  double loss = kUnknown;                 // of the last step, L2 loss included
  double images_per_second = kUnknown;    // of all ranks, over the last steps
  double eta_seconds = kUnknown;          // of training, if it is not paused any more
  std::int64_t checkpoint_step = -1;      // of the newest checkpoint; -1: there is none
  StepTimes times;                        // of rank 0, mean over the last steps; 0: not known
  double median_busy_seconds = kUnknown;  // of all ranks: how long one is busy itself in a step
  std::vector<RankLoad> loads;            // by rank; of many the slowest (run_status.h)
  std::int64_t display_every = 0;         // steps
  std::vector<ControlCommand> requested;  // what was asked for and is not done yet
  RunIdentity identity;
};

// One line, without its end.  What is not known or no number is null.
std::string FormatStatus(const RunStatus& status);
// Throws Error(EX_DATAERR) for any other text.
RunStatus ParseStatus(std::string_view json);

}  // namespace trainer
