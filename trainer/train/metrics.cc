// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/metrics.h"

#include <array>

namespace trainer {

void LossTotals::Add(const LossSums& sums) {
  loss += sums.loss;
  top1 += sums.top1;
  top5 += sums.top5;
  samples += sums.samples;
}

void LossTotals::Add(const LossTotals& other) {
  loss += other.loss;
  top1 += other.top1;
  top5 += other.top5;
  samples += other.samples;
}

StepExchange Exchange(const StepExchange& own, Communicator& communicator) {
  const LossTotals& totals = own.totals;
  std::array<double, 9> values = {totals.loss,
                                  totals.top1,
                                  totals.top5,
                                  totals.samples,
                                  own.asked.stop ? 1.0 : 0.0,
                                  own.asked.save ? 1.0 : 0.0,
                                  own.asked.pause ? 1.0 : 0.0,
                                  static_cast<double>(own.bad_gradients),
                                  static_cast<double>(own.bad_weights)};
  communicator.AllReduceSum(values);
  return {{values[0], values[1], values[2], values[3]},
          {values[4] > 0, values[5] > 0, values[6] > 0},
          static_cast<int>(values[7]),
          static_cast<int>(values[8])};
}

}  // namespace trainer
