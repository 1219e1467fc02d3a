// SPDX-License-Identifier: Apache-2.0
//
// What asks a training to stop, to save its weights or to pause, beside signals: the end of its
// job's time, the files `stop` and `checkpoint` in a directory, and people by ddlctl.  For rank 0
// alone, which tells the others at the end of the step.
//
// Only an empty file is an order, as `touch` makes it: other programs have files and directories of
// these names (TensorFlow's `checkpoint`), which stay as they are.  It is removed once it is
// obeyed, that is when the checkpoint is written.
//
// Used from the thread of the training loop.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>

#include "trainer/checkpoint/run_lock.h"
#include "trainer/control/run_control.h"
#include "trainer/telemetry/text/clock.h"
#include "trainer/telemetry/text/log.h"

namespace trainer {

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
    bool is_begun = false;  // to be obeyed
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
