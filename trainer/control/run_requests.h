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
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "trainer/checkpoint/run_lock.h"
#include "trainer/control/requests.h"
#include "trainer/control/run_control.h"
#include "trainer/control/time_limit.h"
#include "trainer/telemetry/text/clock.h"
#include "trainer/telemetry/text/log.h"

namespace trainer {

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
