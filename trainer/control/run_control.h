// SPDX-License-Identifier: Apache-2.0
//
// Where the loop of a training and those who ask it meet: it tells what it does, they leave their
// orders, and before each step it looks what those are.  On rank 0.
//
// Thread-safe; no call waits for anything but another such call.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/checkpoint/run_lock.h"
#include "trainer/control/control_message.h"
#include "trainer/control/run_status.h"
#include "trainer/telemetry/meters/step_timer.h"
#include "trainer/telemetry/text/clock.h"
#include "trainer/telemetry/text/log.h"

namespace trainer {

// What a training may be asked for in its midst.
struct Requests {
  bool stop = false;   // with a checkpoint
  bool save = false;   // a checkpoint, and to go on
  bool pause = false;  // until nobody asks for it any more
  bool evaluate = false;

  bool any() const { return stop || save || pause || evaluate; }
  // What either asks for.
  Requests operator|(const Requests& other) const {
    return {stop || other.stop, save || other.save, pause || other.pause,
            evaluate || other.evaluate};
  }
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
  Requests Look();
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

// What asks a training to stop, to save its weights or to pause, beside signals: the end of its
// job's time, the files `stop` and `checkpoint` in a directory, and people by ddlctl.  For rank 0
// alone, which tells the others at the end of the step.
//
// Only an empty file is an order, as `touch` makes it: other programs have files and directories of
// these names (TensorFlow's `checkpoint`), which stay as they are.  It is removed once it is
// obeyed, that is when the checkpoint is written.
//
// Used from the thread of the training loop.

// When a training has to stop so that its last checkpoint is written before its job's time ends.
// Pure: all times are told, in seconds, points of time since 1970.
class TimeLimit {
 public:
  // What is kept for the checkpoint before one of this launch was timed.
  static constexpr double kUnmeasured = 60;
  // Later it is kFactor times the longest of the last kCheckpoints, for a file system that others
  // use has worse hours, and kSpare for the ranks to end.  While one is being written it counts
  // twice: that one is finished before the last one begins.
  static constexpr double kFactor = 2;
  static constexpr std::size_t kCheckpoints = 5;
  static constexpr double kSpare = 10;
  // kUnmeasured and kSpare are no more than this share of what was left when the launch began: a
  // job of a minute is to train as well.
  static constexpr double kShare = 0.25;
  // A step that has begun is finished first: the longest of the last kSteps is kept for it too.
  static constexpr std::size_t kSteps = 20;

  // The job's time ends at `end`, the launch began at `start`.  `margin`: what is kept for a
  // checkpoint instead of what is measured.  REQUIRES: start < end.
  TimeLimit(double start, double end, std::optional<double> margin);

  void StepTook(double seconds);
  void CheckpointBegan();
  // The one that began.
  void CheckpointTook(double seconds);

  double end() const { return end_; }
  // How long before the end the last step has to begin.
  double margin() const;
  bool IsDue(double now) const { return now >= end_ - margin(); }

 private:
  const double end_;
  const double at_most_;  // of kUnmeasured and kSpare
  const std::optional<double> margin_;
  std::deque<double> steps_;
  std::deque<double> checkpoints_;
  bool is_writing_ = false;
};

struct RunRequestsOptions {
  std::filesystem::path directory;
  std::optional<TimeLimit> limit;
  WallClock clock = SystemClock();
  Logger log;
  RunControl* control = nullptr;  // null: nobody asks by ddlctl; outlives the object
  RunLock* lock = nullptr;        // to be renewed; may be null; outlives the object
};

class RunRequests {
 public:
  static constexpr double kSecondsBetweenLooks = 1;  // at the files

  // Removes orders from before, with a warning for each; says when the training will stop.
  explicit RunRequests(RunRequestsOptions options);
  RunRequests(const RunRequests&) = delete;
  RunRequests& operator=(const RunRequests&) = delete;

  // Before each step, and again and again in a pause: what is asked for.  Stop stays asked for,
  // save until BeginSave.  Throws as RunLock::Renew.
  Requests Look();
  void StepTook(double seconds);
  // A checkpoint of the state at hand begins: what has been asked for by now is obeyed with it.
  // Throws as RunLock::Renew; then it must not be written.
  void BeginSave();
  // It is written, that of `step`, so many seconds later.
  void OnCheckpointSaved(std::int64_t step, double seconds);
  // What was asked for is done: removes the files.
  void AckCheckpoint();
  // Whom else to tell what the training does; may be null.
  RunControl* control() const { return options_.control; }

  // What has asked to stop, to be read behind "stopped", or "".
  const std::string& why() const { return why_; }

 private:
  struct Request {
    std::filesystem::path file;
    bool is_given = false;
    bool is_begun = false;     // to be obeyed
    bool is_rejected = false;  // what is there is none, and was told
    bool is_looked_for = true;
  };
  enum : std::size_t { kStop, kSave };

  bool IsGiven(Request& command);
  void Remove(Request& command);
  void LookAtFiles(double now);
  void LogStopMargin();

  RunRequestsOptions options_;
  std::array<Request, 2> orders_;
  double looked_ = 0;  // at the files, in seconds since 1970
  double logged_margin_ = 0;
  std::string why_;
};

}  // namespace trainer
