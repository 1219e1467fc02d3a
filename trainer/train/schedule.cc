// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "trainer/core/error.h"

namespace trainer {
namespace {

double RescaledRate(const ScheduleConfig& config, std::int64_t global_batch) {
  const double ratio = static_cast<double>(global_batch) / 256;
  switch (config.lr_scaling) {
    case RateScaling::kNone:
      return config.lr_init;
    case RateScaling::kSqrt:
      return config.lr_init * std::sqrt(ratio);
    default:
      return config.lr_init * static_cast<double>(global_batch) / 256;
  }
}

}  // namespace

Schedule MakeSchedule(const ScheduleConfig& config, std::int64_t samples, const GlobalBatch& batch,
                      const char* set) {
  DDL_CHECK(batch.images() > 0 && config.num_iter > 0);
  Schedule schedule;
  schedule.iter_unit = config.iter_unit;
  schedule.global_batch = batch.images();
  schedule.whole_steps_per_epoch = samples / schedule.global_batch;
  if (schedule.whole_steps_per_epoch == 0) {
    throw Error(
        EX_CONFIG,
        "the " + std::string(set) + " set has " + std::to_string(samples) +
            " images, less than one step of " + DescribeSplit(batch) + ": give a smaller " +
            (batch.is_fixed          ? "--global_batch_size"
             : batch.accumulate == 1 ? "--batch_size or start fewer ranks"
                                     : "--accumulate or --batch_size or start fewer ranks"));
  }
  constexpr std::int64_t kMaxSteps = 1'000'000'000'000;
  const std::int64_t unit =
      config.iter_unit == IterationUnit::kEpoch ? schedule.whole_steps_per_epoch : 1;
  if (config.num_iter > kMaxSteps / unit) {
    throw Error(EX_USAGE, "--num_iter " + std::to_string(config.num_iter) +
                              ": that is more than 10^12 steps; give a smaller number");
  }
  if (config.iter_unit == IterationUnit::kEpoch) {
    schedule.total_steps = schedule.whole_steps_per_epoch * config.num_iter;
    schedule.epochs = config.num_iter;
    schedule.decay_steps = schedule.total_steps;
  } else {
    const std::int64_t per_epoch = schedule.whole_steps_per_epoch;
    schedule.total_steps = config.num_iter;
    schedule.epochs = (config.num_iter + per_epoch - 1) / per_epoch;
    schedule.decay_steps = 90 * samples / schedule.global_batch;
  }
  schedule.steps_per_epoch =
      static_cast<double>(schedule.total_steps) / static_cast<double>(schedule.epochs);
  schedule.warmup_steps = static_cast<std::int64_t>(schedule.steps_per_epoch *
                                                    static_cast<double>(config.lr_warmup_epochs));
  schedule.rescaled_rate = RescaledRate(config, schedule.global_batch);
  schedule.end_rate = std::min(config.lr_end, schedule.rescaled_rate);
  schedule.decay = config.lr_schedule;
  if (schedule.decay == RateDecay::kPolynomial) {
    const std::int64_t left = schedule.total_steps - schedule.warmup_steps;
    schedule.decay_steps =
        config.lr_decay_steps > 0 ? config.lr_decay_steps : std::max<std::int64_t>(left, 1);
  }

  schedule.steps_per_launch =
      config.run_iter < 0
          ? schedule.total_steps
          : std::min(std::min(config.run_iter, schedule.total_steps) * unit, schedule.total_steps);
  return schedule;
}

Schedule Schedule::From(const Position& position) const {
  Schedule schedule = *this;
  schedule.start = position;
  if (iter_unit == IterationUnit::kEpoch) {
    const std::int64_t samples_left = PositionAt(total_steps).sample - position.sample;
    schedule.total_steps = position.step + samples_left / global_batch;
  }
  return schedule;
}

double Schedule::LearningRate(std::int64_t step) const {
  const double s = static_cast<double>(PositionAt(step).sample) / static_cast<double>(global_batch);
  const auto warmup = static_cast<double>(warmup_steps);
  if (s < warmup) return rescaled_rate * s / warmup;
  const auto end = static_cast<double>(decay_steps);
  if (decay == RateDecay::kPolynomial) {
    const double left = 1 - std::min(s - warmup, end) / end;
    return end_rate + (rescaled_rate - end_rate) * left * left;
  }
  if (decay == RateDecay::kCosine) {
    return rescaled_rate * 0.5 * (1 + std::cos(std::numbers::pi * std::min(s, end) / end));
  }
  constexpr double kEpochs[] = {30, 60, 80, 90};
  constexpr double kFactors[] = {1, 0.1, 0.01, 0.001, 0.0001};
  int passed = 0;
  for (const double epoch : kEpochs) {
    if (s > std::floor(steps_per_epoch * epoch)) ++passed;
  }
  return rescaled_rate * kFactors[passed];
}

bool Schedule::EndsPeriod(std::int64_t step, std::int64_t every) const {
  DDL_CHECK(every > 0);
  if (step <= 0) return false;
  if (iter_unit == IterationUnit::kBatch) return step % every == 0;
  return EpochOf(step) / every != EpochOf(step - 1) / every;
}

std::int64_t Schedule::EndOfLaunch(std::int64_t step) const {
  return std::min(total_steps, step + steps_per_launch);
}

}  // namespace trainer
