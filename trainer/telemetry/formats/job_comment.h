// SPDX-License-Identifier: Apache-2.0
//
// What a training does now, as the comment of its Slurm job: squeue and scontrol show it to those
// who are not logged in where it runs.
//   ddltraind step 1200/25000 epoch 3/50 loss 2.4141 365.1 images/s eta 0:42:07
// Not thread-safe; rank 0 alone has one.

#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/telemetry/formats/training_log.h"
#include "trainer/telemetry/text/clock.h"

namespace trainer {

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
  TimePoint first_time_;
  TimePoint updated_;
  std::int64_t first_step_ = -1;
};

// The order that makes `comment` that of a job.
std::vector<std::string> CommentOrder(const std::string& job_id, const std::string& comment);

}  // namespace trainer
