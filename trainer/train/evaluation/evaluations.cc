// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/evaluation/evaluations.h"

#include <array>
#include <vector>

#include "trainer/checkpoint/evaluated.h"

namespace trainer {

Evaluations::Evaluations(const TrainConfig& config, Communicator& communicator,
                         const Schedule& schedule)
    : config_(config), schedule_(schedule) {
  std::array<double, 2> noted = {-1, -1};
  if (communicator.rank() == 0) {
    const std::vector<EvaluatedCheckpoint> evaluated = ListEvaluated(ModelDirectory(config)).known;
    for (const EvaluatedCheckpoint& checkpoint : evaluated) {
      if (checkpoint.step == schedule.start.step) noted[0] = checkpoint.top1;
    }
    if (const auto best = BestOf(evaluated)) noted[1] = best->top1;
  }
  communicator.Broadcast(noted.data(), sizeof noted, 0);
  first_top1_ = noted[0];
  best_top1_ = noted[1];
}

bool Evaluations::IsDue(std::int64_t step) const {
  return config_.eval_every > 0 && step < schedule_.total_steps &&
         schedule_.EndsPeriod(step, config_.eval_every);
}

bool Evaluations::Add(double top1) {
  if (top1 <= best_top1_) return false;
  best_top1_ = top1;
  return true;
}

bool Evaluations::ReachesTarget(double top1) const {
  // 28,500 of 50,000 are 56.99999999999999 % in doubles; one image of a billion is less than this.
  constexpr double kRounding = 1e-9;
  return config_.stop_at_top1 > 0 && top1 * 100 >= config_.stop_at_top1 - kRounding;
}

}  // namespace trainer
