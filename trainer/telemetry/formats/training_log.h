// SPDX-License-Identifier: Apache-2.0
//
// What a log is told of a training.  Each format is a log (nvlog.h, ...) and overrides what its
// readers look for; train/logging tells all of them alike, one after the other. OpenLogs and
// outputs/run_outputs.cc open them.  Not thread-safe: the training loop tells them.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/telemetry/meters/step_timer.h"
#include "trainer/telemetry/text/log.h"

namespace trainer {

struct Options;

// The training that this launch is to make.
struct TrainingSummary {
  std::uint64_t seed = 0;
  int world_size = 1;
  std::int64_t batch_per_rank = 0;
  std::int64_t batches_per_step = 1;  // of a rank
  std::int64_t global_batch = 0;      // images of all ranks in a step
  std::int64_t train_samples = 0;     // of the sets
  std::int64_t eval_samples = 0;
  std::string optimizer = "sgd";     // as --optimizer has it
  double initial_learning_rate = 0;  // at a global batch of 256
  double base_learning_rate = 0;     // scaled to the global batch
  std::int64_t warmup_epochs = 0;
  std::int64_t decay_steps = 0;
  std::optional<double> end_learning_rate = {};  // of a polynomial decay with the power 2
  double momentum = 0;
  double weight_decay = 0;
  std::int64_t first_step = 0;   // from 0; this launch begins with it
  std::int64_t first_epoch = 0;  // from 0; that step is in it
  std::int64_t total_steps = 0;  // of the whole run, those before first_step among them
  std::int64_t epochs = 0;       // the same of epochs
  double steps_per_epoch = 0;
};

// A step that is done.
struct StepMetrics {
  std::int64_t step = 0;         // from 0, of the whole run
  std::int64_t launch_step = 0;  // from 0 at the start of the process
  std::int64_t total_steps = 0;  // of the whole run
  std::int64_t epoch = 0;        // from 0; the step is in it
  std::int64_t epochs = 0;       // of the whole run; 0: its length is told in steps
  bool ends_epoch = false;
  bool is_last = false;          // of the launch, unless that is stopped before
  bool is_displayed = false;     // one of every --display_every
  double images_per_second = 0;  // all ranks together, of this one step
  double cross_entropy = 0;
  double l2_loss = 0;
  double total_loss = 0;
  double top1 = 0;  // fraction of the images of the step
  double learning_rate = 0;
  double gradient_norm = 0;
  double loss_scale = 1;
  bool skipped = false;  // nothing was updated
  StepTimes times = {};  // of this rank

  std::int64_t steps_done() const { return step + 1; }
  std::int64_t epochs_done() const { return ends_epoch ? epoch + 1 : epoch; }
};

// All ranks have gone back to a checkpoint, since a step found numbers that are none.
struct RollbackSummary {
  std::int64_t first_step = 0;      // from 0; training goes on with it
  std::int64_t total_steps = 0;     // of the whole run, from now on
  std::int64_t skipped_images = 0;  // of the whole run
  std::int64_t bad_epoch = 0;       // from 0; the step that found them was in it
  bool ends_epoch = false;          // that step was the last of bad_epoch
  bool is_last = false;             // this launch makes no step any more
};

struct EvaluationSummary {
  std::int64_t epoch = 0;  // from 0; the last update of the weights was in it
  std::int64_t steps = 0;
  std::int64_t global_batch = 0;
};

struct EvaluationMetrics {
  std::int64_t step = 0;   // how many updates the weights have had
  std::int64_t epoch = 0;  // as EvaluationSummary has it
  double top1 = 0;         // fractions of 1
  double top5 = 0;
  double cross_entropy = 0;
  double images_per_second = 0;  // all ranks together
};

class TrainingLog {
 public:
  virtual ~TrainingLog() = default;

  // A training begins.  What a log was told of its launch is written here, in front of what
  // StartTraining has others write to the same stream.
  virtual void StartRun() {}
  virtual void StartTraining(const TrainingSummary& /*summary*/) {}
  virtual void Step(const StepMetrics& /*metrics*/) {}
  virtual void RolledBack(const RollbackSummary& /*summary*/) {}
  // Training goes on after it has rested for so many seconds.
  virtual void Resume(double /*seconds*/) {}
  // Of the median step; nullopt where none was measured.
  virtual void EndTraining(std::optional<double> /*images_per_second*/) {}

  // Also in the midst of a training, and without any.
  virtual void StartEvaluation(const EvaluationSummary& /*summary*/) {}
  virtual void EndEvaluation(const EvaluationMetrics& /*metrics*/) {}
  // A training ends; `complete`: trained to its end and evaluated.
  virtual void EndRun(bool /*complete*/) {}

  // Of the median step.
  virtual void EndInferenceBenchmark(double /*images_per_second*/) {}

  // Tells the log for people how many lines were lost, if any were.
  virtual void LogDroppedOutputs() const {}
};

// The launch that a log is of.
struct LoggedLaunch {
  const Options& options;
  int rank = 0;
  std::string host;     // of the rank
  std::string version;  // of the program
  std::string job;      // "" outside Slurm
  Logger log;           // for people
};

// Opens the logs that are asked for, as LogFormat::open: those of rank 0, or of each rank.
std::vector<std::unique_ptr<TrainingLog>> OpenLogs(const LoggedLaunch& launch,
                                                   bool is_of_each_rank);

}  // namespace trainer
