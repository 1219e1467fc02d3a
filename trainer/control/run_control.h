// SPDX-License-Identifier: Apache-2.0
//
// Where the loop of a training and those who ask it meet: it tells what it does, they leave their
// orders, and before each step it looks what those are.  On rank 0.
//
// Thread-safe; no call waits for anything but another such call.

#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/control/control_message.h"
#include "trainer/control/rank_loads.h"
#include "trainer/telemetry/meters/step_timer.h"

namespace trainer {

// What a training may be asked for in its midst.
struct Requests {
  bool stop = false;   // with a checkpoint
  bool save = false;   // a checkpoint, and to go on
  bool pause = false;  // until nobody asks for it any more
  bool evaluate = false;
};

// What was asked for.
struct PendingRequests {
  bool stop = false;
  bool save = false;  // a checkpoint
  bool evaluate = false;
  bool pause = false;  // until it is false again
};

class RunControl {
 public:
  static constexpr std::size_t kRecentSteps = 20;  // that speed and phases are of

  // `seconds`: of a clock that is never set.
  explicit RunControl(RunIdentity identity, std::int64_t display_every,
                      std::function<double()> seconds = SteadySeconds);
  RunControl(const RunControl&) = delete;
  RunControl& operator=(const RunControl&) = delete;

  // For the loop.
  struct TrainingExtent {
    std::int64_t step = 0;    // done before this launch
    std::int64_t epoch = 0;   // under way then, from 0
    std::int64_t steps = 0;   // of the whole training
    std::int64_t epochs = 0;  // 0: it is counted in steps
    std::int64_t global_batch = 0;
    bool can_evaluate = false;  // there are images to evaluate with
  };
  void StartTraining(const TrainingExtent& plan);
  // An event that cannot happen in this state changes nothing.
  void OnEvent(RunEvent event);
  struct Step {
    std::int64_t steps = 0;  // done, those before a resume included
    std::int64_t epoch = 0;  // under way, from 0
    double loss = 0;
    StepTimes times;
  };
  void OnStepEnd(const Step& step);
  // By rank; OnRankMetrics after each step.
  void SetHosts(std::vector<std::string> hosts);
  void OnRankMetrics(std::span<const double> busy_seconds, std::span<const RankMetrics> said);
  // There is a checkpoint of this step.
  void OnCheckpointSaved(std::int64_t step);
  // What to do.  A checkpoint that was asked for is wanted until AckCheckpoint, an evaluation until
  // Evaluated.
  PendingRequests Look();
  // The checkpoint that Look has told of is begun; not one that was asked for since.
  void AckCheckpoint();
  // The same of an evaluation.
  void Evaluated();
  std::int64_t display_every() const;

  // By what the ranks are asked for their stacks: returns the number of the order, and waits for
  // nothing.  Without it that order is refused.
  void OnStacks(std::function<std::uint64_t()> ask);

  // For those who ask.
  ControlAnswer Take(const ControlRequest& request);
  RunStatus status() const;

 private:
  enum class PendingRequest : std::uint8_t { kNone, kNew, kSeen };

  static double SteadySeconds();
  // Sets what the answer has beside the status.
  void Obey(const ControlRequest& request, ControlAnswer& answer);
  RunStatus StatusNow() const;

  const RunIdentity identity_;
  const std::function<double()> seconds_;

  mutable std::mutex mutex_;
  RunState state_ = RunState::kStarting;
  TrainingExtent plan_;
  Step last_;
  bool has_step_ = false;
  StepTimer recent_{kRecentSteps};
  RankLoads loads_;
  std::int64_t checkpoint_step_ = -1;
  std::int64_t display_every_;
  // Of this launch, without pauses.
  std::int64_t steps_ = 0;
  double active_seconds_ = 0;
  std::optional<double> counted_until_;  // active_seconds_; none: the clock does not run
  std::function<std::uint64_t()> ask_for_stacks_;
  bool stop_ = false;
  bool pause_ = false;
  PendingRequest save_ = PendingRequest::kNone;
  PendingRequest evaluate_ = PendingRequest::kNone;
};

}  // namespace trainer
