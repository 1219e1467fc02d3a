// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/describe_run.h"

#include <fmt/format.h>

#include "support/counted.h"
#include "trainer/train/schedule.h"

namespace trainer {

std::vector<std::string> DescribeRun(const TrainConfig& config, int ranks, std::int64_t samples) {
  const Schedule schedule = MakeSchedule(config.schedule, samples, GlobalBatchOf(config, ranks));
  return {
      fmt::format("network           {}, {} classes, {} x {} pixels", config.arch, config.classes,
                  config.image_size, config.image_size),
      fmt::format("global batch      {} images ({} x {}{})", schedule.global_batch,
                  support::Counted(ranks, "rank"),
                  config.accumulate == 1 ? "" : fmt::format("{} batches x ", config.accumulate),
                  config.batch_size),
      fmt::format("steps             {} in {} epochs of {}", schedule.total_steps, schedule.epochs,
                  schedule.whole_steps_per_epoch),
      fmt::format("learning rate     {:g} after {} steps of warm-up, {}", schedule.rescaled_rate,
                  schedule.warmup_steps, schedule.use_cosine_lr ? "cosine decay" : "step decay"),
  };
}

}  // namespace trainer
