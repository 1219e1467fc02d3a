// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/step/queue_ahead.h"

namespace trainer {

bool IsLookedAt(std::int64_t done, std::int64_t end, const TrainConfig& config,
                const Schedule& schedule) {
  const bool is_evaluated = config.eval_every > 0 && schedule.EndsPeriod(done, config.eval_every);
  const bool is_dumped = !config.dump_state.empty() && done == config.dump_state_step;
  const bool trace_begins = config.trace.count > 0 && done + 1 == config.trace.first;
  return done >= end || IsTurn(done, config.checkpoint_every) || IsTurn(done, config.paranoid) ||
         is_evaluated || is_dumped || trace_begins;
}

bool MayQueueNext(const NextStep& next) {
  return next.has_graphs && next.batches == 1 && !next.is_looked_at && !next.is_one_replayed &&
         !next.changes_loss_scale && !next.is_requested;
}

}  // namespace trainer
