// SPDX-License-Identifier: Apache-2.0
//
// What is counted during steps, over all ranks.  doc/performance.md defines what is printed of it.

#pragma once

#include "trainer/backend/ops.h"
#include "trainer/comm/communicator.h"

namespace trainer {

// Sums over samples, in double so that a whole evaluation adds up.
struct LossTotals {
  double loss = 0;
  double top1 = 0;
  double top5 = 0;
  double samples = 0;

  void Add(const LossSums& sums);
  void Add(const LossTotals& other);
  // Means; not a number when there are no samples.
  double mean_loss() const { return loss / samples; }
  double top1_fraction() const { return top1 / samples; }
  double top5_fraction() const { return top5 / samples; }
};

// What the ranks tell each other at the end of each step.
struct StepExchange {
  LossTotals totals;  // in: of this rank; out: of all
  bool stop = false;  // in: this rank was asked to stop; out: any was
};

// One all-reduce.  Collective; every rank gets the same result, so all stop after the same step.
StepExchange Exchange(const StepExchange& own, Communicator& communicator);

}  // namespace trainer
