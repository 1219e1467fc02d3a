// SPDX-License-Identifier: Apache-2.0

#include "scaling/step.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace scaling {

double ExpectedLargest(int count) {
  if (count < 2) return 0;
  // The integral of 1 - F^n above 0 less that of F^n below it.
  constexpr int kSlices = 2000;
  constexpr double kReach = 10;
  constexpr double kWidth = kReach / kSlices;
  double sum = 0;
  for (int i = 0; i < kSlices; ++i) {
    const double x = (i + 0.5) * kWidth;
    const double tail = std::erfc(x / std::numbers::sqrt2) / 2;
    sum += -std::expm1(count * std::log1p(-tail)) - std::pow(tail, count);
  }
  return sum * kWidth;
}

StepBreakdown StepBreakdownOf(const StepWork& work, const Links& links, int ranks) {
  StepBreakdown parts;
  parts.compute = work.alone;
  if (ranks <= 1) return parts;
  const double backward = work.alone * work.backward_share;
  double done = 0;  // since the start of backward
  double bytes = 0;
  for (const Bucket& bucket : work.buckets) {
    double start = std::max(done, work.overlaps ? bucket.ready * backward : backward);
    if (work.cycle > 0) start = std::ceil(start / work.cycle) * work.cycle;
    const double seconds = AllReduceSeconds(links, ranks, bucket.bytes);
    done = start + seconds;
    parts.sums += seconds;
    bytes += bucket.bytes;
  }
  parts.exposed = std::max(0.0, done - backward);
  if (work.staging_rate > 0) {
    parts.sums += 2 * bytes / work.staging_rate;
    parts.exposed += 2 * bytes / work.staging_rate;
  }
  parts.slowest = work.spread * ExpectedLargest(ranks);
  if (NodesOf(links, ranks) > 1) parts.wait = work.wait_between;
  return parts;
}

}  // namespace scaling
