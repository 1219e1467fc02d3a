// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/loop/modes.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>

#include "trainer/core/error.h"
#include "trainer/data/images/image_files.h"
#include "trainer/telemetry/meters/step_timer.h"
#include "trainer/train/state/initial_weights.h"
#include "trainer/train/step/metrics.h"

namespace trainer {
namespace {

// Of one forward pass, the batch being asked for and its result being there.
double InferenceSeconds(Launch& launch, std::int64_t step) {
  launch.control.Enter(Activity::kEvaluation, step);
  const auto begun = std::chrono::steady_clock::now();
  DataLoader& source = *launch.deps.evaluation;
  HostBatch batch;
  if (!source.Next(batch)) {
    source.Seek({});
    DDL_CHECK(source.Next(batch));
  }
  Infer(launch.network, launch.device_batch, batch, *launch.stream);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

}  // namespace

Schedule BenchmarkSchedule(const Launch& launch, const DataLoader& source) {
  const TrainConfig& config = launch.config;
  const Schedule schedule = MakeSchedule(config.schedule, source.samples(),
                                         GlobalBatchOf(config, launch.deps.communicator.size()),
                                         IsTraining(config.mode) ? "training" : "validation");
  const std::int64_t steps = schedule.EndOfLaunch(0);
  if (steps <= config.warmup_steps) {
    throw Error(EX_USAGE, fmt::format("a benchmark of {} steps has nothing left after {} steps of "
                                      "warm-up: give a larger --num_iter or a smaller "
                                      "--warmup_steps",
                                      steps, config.warmup_steps));
  }
  return schedule;
}

TrainResult BenchmarkInference(Launch& launch) {
  const Schedule schedule = BenchmarkSchedule(launch, *launch.deps.evaluation);
  const std::int64_t warmup = launch.config.warmup_steps;
  const std::int64_t end = schedule.EndOfLaunch(0) - warmup;
  launch.InitializeAfresh();
  TrainResult result;
  StepTimer measured;
  for (std::int64_t step = -warmup; step < end; ++step) {
    if (launch.IsToStop()) {
      result.ending = Ending::kStopped;
      return result;
    }
    StepTimes times;
    times.step = InferenceSeconds(launch, result.step);
    if (step < 0) continue;  // warm-up
    measured.Add(times);
    ++result.step;
  }
  const double median = measured.Median().step;
  result.images_per_second = static_cast<double>(schedule.global_batch) / median;
  launch.report.EndInferenceBenchmark(median, result.step);
  return result;
}

namespace {

// Returns how many updates they have had, 0 where that is not known.
std::int64_t LoadWeights(Launch& launch) {
  const SnapshotDeps deps = launch.snapshot_deps();
  if (!launch.config.init_from.empty()) {
    InitializeFromFile(deps);
    return 0;
  }
  if (const auto position = RestoreSnapshot(deps, launch.loss_scale, std::nullopt)) {
    return position->step;
  }
  throw Error(EX_USAGE, "there are no weights: no checkpoint in '" +
                            ModelDirectory(launch.config).string() +
                            "'; give the --model_dir of a run, or a file by --init_from");
}

}  // namespace

TrainResult EvaluateSaved(Launch& launch) {
  TrainResult result;
  result.step = LoadWeights(launch);
  result.evaluation = launch.RunEvaluation(result.step);
  if (!result.evaluation) {
    result.ending = Ending::kStopped;
    launch.control.Stop();
  } else if (!launch.config.export_dir.empty()) {
    ExportModel(launch.snapshot_deps(), ExportFile(launch.config));
  }
  launch.control.AckCheckpoint();
  return result;
}

TrainResult PredictSaved(Launch& launch) {
  TrainResult result;
  result.step = LoadWeights(launch);
  for (const std::filesystem::path& file : FindImageFiles(launch.config.to_predict)) {
    if (launch.IsToStop()) {
      result.ending = Ending::kStopped;
      break;
    }
    result.predictions.push_back(PredictImage(file, launch.deps.backend, launch.network,
                                              launch.device_batch, *launch.stream));
  }
  return result;
}

}  // namespace trainer
