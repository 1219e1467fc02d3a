// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/loop/benchmark.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdint>

#include "trainer/core/error.h"
#include "trainer/telemetry/meters/step_timer.h"
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

}  // namespace trainer
