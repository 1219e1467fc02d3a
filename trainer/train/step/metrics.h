// SPDX-License-Identifier: Apache-2.0
//
// What is counted during steps, over all ranks.  doc/reference/metrics.md defines what is printed
// of it.

#pragma once

#include <span>

#include "trainer/backend/ops.h"
#include "trainer/comm/communicator.h"
#include "trainer/control/requests.h"

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
  LossTotals totals;   // in: of this rank; out: of all
  Requests requested;  // in: of this rank; out: of any
  // In: 1 if a summed gradient was NaN here; out: ranks that found one.
  int bad_gradients = 0;
  // The same of the weights before the update.
  int bad_weights = 0;
  // In: of this rank in its place, 0 in the others; out: of all (train/step/rank_busy_times.h).  At
  // most RankSeconds::kPlaces, equally many on each rank.
  std::span<double> rank_seconds = {};
  // The same of what ranks say in turn (train/step/rank_metrics_exchange.h); at most
  // RankMetricsExchange::kPlaces.
  std::span<double> rank_metrics_exchange = {};
};

// One all-reduce.  Collective; every rank gets the same result, so all stop after the same step.
StepExchange Exchange(const StepExchange& own, Communicator& communicator);

}  // namespace trainer
