// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/logging/describe_run.h"

#include <fmt/format.h>

#include "support/counted.h"
#include "trainer/data/shard_sampler.h"
#include "trainer/train/schedule.h"

namespace trainer {
namespace {

std::string DescribeDecay(const Schedule& schedule) {
  switch (schedule.decay) {
    case RateDecay::kCosine:
      return "cosine decay";
    case RateDecay::kPolynomial:
      return fmt::format("polynomial decay to {:g} in {} steps", schedule.end_rate,
                         schedule.decay_steps);
    default:
      return "step decay";
  }
}

}  // namespace

std::vector<std::string> DescribeRun(const TrainConfig& config, int ranks, std::int64_t samples) {
  const GlobalBatch batch = GlobalBatchOf(config, ranks);
  std::vector<std::string> rows = {
      fmt::format("network           {}, {} classes, {} x {} pixels", config.arch, config.classes,
                  config.image_size, config.image_size),
      fmt::format("global batch      {} images ({})", batch.images(), DescribeSplit(batch)),
  };
  if (config.mode == RunMode::kEvaluate || config.mode == RunMode::kPredict) {
    rows.push_back(fmt::format("steps             {} for {}", EvaluationSteps(batch, samples),
                               support::Counted(samples, "image")));
    return rows;
  }
  const bool trains = IsTraining(config.mode);
  const Schedule schedule =
      MakeSchedule(config.schedule, samples, batch, trains ? "training" : "validation");
  rows.push_back(fmt::format("steps             {} in {} epochs of {}", schedule.total_steps,
                             schedule.epochs, schedule.whole_steps_per_epoch));
  if (trains) {
    rows.push_back(fmt::format("learning rate     {:g} after {} steps of warm-up, {}",
                               schedule.rescaled_rate, schedule.warmup_steps,
                               DescribeDecay(schedule)));
    if (config.optimizer == OptimizerKind::kLars) {
      rows.emplace_back("optimizer         LARS: each tensor's rate goes by its norms");
    }
  }
  return rows;
}

}  // namespace trainer
