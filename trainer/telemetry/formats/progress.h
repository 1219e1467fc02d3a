// SPDX-License-Identifier: Apache-2.0
//
// What a person watching a run sees.  In a file: one line per interval,
//   2026-01-02T03:04:05+01:00 epoch 3/50 step 1200/25000 365.1 images/s loss 2.4141 lr 0.1024 eta
//   0:42:07
// and never a carriage return.  On a terminal: the same with a bar, redrawn in place, so that all
// else that goes there is to know of the line (telemetry/text/log.h).
// Not thread-safe; rank 0 alone writes it.

#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/options/options.h"
#include "trainer/telemetry/formats/training_log.h"
#include "trainer/telemetry/text/clock.h"
#include "trainer/telemetry/text/log.h"

namespace trainer {

// When a training ends: the mean of its steps since the first call of Begin, for those that are
// left.
class Eta {
 public:
  // Whether it was the first call.
  bool Begin(const StepMetrics& metrics, TimePoint now);
  // Training has rested.
  void LeaveOut(double seconds);
  // "0:42:07"; "?" before the second step.
  std::string Text(const StepMetrics& metrics, TimePoint now) const;

 private:
  TimePoint first_time_;
  std::int64_t first_step_ = -1;
};

// " epoch 3/50": people count from 1, and at the very end the last one stays; "" where the length
// is told in steps.
std::string EpochText(const StepMetrics& metrics);

class Progress : public TrainingLog {
 public:
  // `line` must stay alive.
  Progress(const ProgressOptions& options, RedrawnLine& line, WallClock clock = SystemClock());

  // Prints when the interval is over, and always for the last step of the run.
  // The mean of Eta leaves pauses out.
  void Step(const StepMetrics& metrics) override;
  void Resume(double seconds) override { eta_.LeaveOut(seconds); }

 private:
  std::string Line(const StepMetrics& metrics, TimePoint now) const;

  ProgressOptions options_;
  RedrawnLine& line_;
  WallClock clock_;
  TimePoint last_print_;
  Eta eta_;
};

// What a training does now, as the comment of its Slurm job: squeue and scontrol show it to those
// who are not logged in where it runs.
//   ddltraind step 1200/25000 epoch 3/50 loss 2.4141 365.1 images/s eta 0:42:07
// Not thread-safe; rank 0 alone has one.

extern const LogFormat kJobComment;

// Runs one order at a time and does not wait for it.
class BackgroundCommand {
 public:
  static constexpr std::chrono::seconds kTimeout{5};

  // `on_failure` is told, in one line, why an order was not carried out.
  explicit BackgroundCommand(std::function<void(const std::string& why)> on_failure)
      : on_failure_(std::move(on_failure)) {}
  // Gives an order that has not ended kTimeout for it, then kills it.
  ~BackgroundCommand();
  BackgroundCommand(const BackgroundCommand&) = delete;
  BackgroundCommand& operator=(const BackgroundCommand&) = delete;

  // Starts `argv` (argv[0] is a path, or a name in PATH), which has nothing to read and prints
  // nowhere, and returns at once.  One before it that has not ended is killed.
  void Give(const std::vector<std::string>& argv);

 private:
  // Whether no order runs any more; tells of one that has failed.
  bool HasEnded();
  void Kill();

  const std::function<void(const std::string&)> on_failure_;
  std::string program_;
  pid_t child_ = 0;
};

class JobComment : public TrainingLog {
 public:
  // slurmctld writes its state for each update.
  static constexpr double kSecondsBetweenUpdates = 60;
  using Update = std::function<void(const std::string& comment)>;

  explicit JobComment(Update update, WallClock clock = SystemClock());

  // Updates the comment after the first one, then no more often than that.
  void Step(const StepMetrics& metrics) override;

 private:
  std::string Text(const StepMetrics& metrics, TimePoint now) const;

  const Update update_;
  const WallClock clock_;
  TimePoint updated_;
  Eta eta_;
};

// The order that makes `comment` that of a job.
std::vector<std::string> CommentOrder(const std::string& job_id, const std::string& comment);

}  // namespace trainer
