// SPDX-License-Identifier: Apache-2.0
//
// Tells the logs what the training loop does.  The loop calls it on every rank; most logs are those
// of rank 0.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/comm/communicator.h"
#include "trainer/telemetry/formats/training_log.h"
#include "trainer/telemetry/meters/device_state.h"
#include "trainer/telemetry/meters/op_profile.h"
#include "trainer/telemetry/meters/step_timer.h"
#include "trainer/telemetry/text/log.h"
#include "trainer/train/config.h"
#include "trainer/train/evaluation/evaluate.h"
#include "trainer/train/monitor/stragglers.h"
#include "trainer/train/schedule.h"
#include "trainer/train/step/metrics.h"

namespace trainer {

// For --dry_run: network, batch, steps, learning rates, one line each.  `samples` of the set
// that it is about.
std::vector<std::string> DescribeRun(const TrainConfig& config, int ranks, std::int64_t samples);

// Where to write.  main makes and keeps them; every rank has a log for people, and may have others.
struct Outputs {
  Logger log;
  std::vector<TrainingLog*> logs = {};  // told in this order
  GpuMeter* gpu = nullptr;              // of the rank's own; null: there is none
};

// How many images there are.
struct SetSizes {
  std::int64_t training = 0;
  std::int64_t evaluation = 0;  // 0: there is no such set
};

class LogDispatcher {
 public:
  // How far above the mean before it an outlier is at least, as a share of that (SpikeDetector).
  // Gradients of single batches differ a lot without harm.
  static constexpr double kShareOfLoss = 0.1;
  static constexpr double kShareOfGradientNorm = 2;

  // All outlive it.  `flop_per_image`: in training, where that is known.
  LogDispatcher(const TrainConfig& config, const Communicator& communicator, const Outputs& outputs,
                std::optional<double> flop_per_image);

  void StartTraining(const Schedule& schedule, const SetSizes& sizes);
  // The steps of a benchmark begin that count.
  void EndWarmup();
  void Step(const StepResult& record);
  // Steps between those that are displayed, from now on; at first config.display_every.
  void DisplayEvery(std::int64_t steps) { display_every_ = steps; }
  // Step `bad_step` has found NaN values (`found`, as NonFiniteGuard has it), and all ranks have
  // rolled back to the checkpoint at `from`, for the `count`-th time; training continues by
  // `schedule`, after the images of that step.
  void RolledBack(const std::string& found, const Position& from, std::int64_t bad_step,
                  const Schedule& schedule, int count);
  // Training rests after `step` updates, and goes on after so many seconds.
  void Pause(std::int64_t step);
  void Resume(std::int64_t step, double seconds);
  // `times` of the steps since StartTraining, or since warm-up in a benchmark.
  void EndTraining(const StepTimer& times);

  // Of the weights after `step` updates.
  void StartEvaluation(std::int64_t step, std::int64_t images);
  void EndEvaluation(std::int64_t step, const EvaluationResult& result);
  // The checkpoint of `step`, of this top-1, is better than all before.
  void FoundBest(std::int64_t step, double top1);
  // `top1` is what --stop_at_top1 asks for.
  void ReachedTarget(std::int64_t step, double top1);
  // A training ends, as it was asked for with `complete`: trained to its end and evaluated.
  void EndRun(bool complete);
  // Of one step, in seconds; over `steps` steps.
  void EndInferenceBenchmark(double median_seconds, std::int64_t steps);

 private:
  StepMetrics Metrics(const StepResult& record) const;
  // To which the weights after `step` updates belong.
  std::int64_t EpochBefore(std::int64_t step) const;
  void WatchNumbers(const StepResult& record);
  void Warn(const std::string& line);
  void LogGpuStats(double images_per_second);
  // A line for people, from rank 0; ends a redrawn progress line first.
  void Say(const std::string& line);

  const TrainConfig& config_;
  const Outputs& outputs_;
  const bool is_root_;
  const int ranks_;
  const std::int64_t global_batch_;
  const std::optional<double> flop_per_image_;
  std::int64_t display_every_;
  Schedule schedule_;
  std::int64_t first_step_ = 0;  // of the launch
  SpikeDetector loss_outliers_{kShareOfLoss};
  SpikeDetector gradient_outliers_{kShareOfGradientNorm};
  std::int64_t left_out_ = 0;  // updates, in this launch
};

}  // namespace trainer
