// SPDX-License-Identifier: Apache-2.0

#include "scaling/step.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <numeric>

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

namespace {

struct PlannedBucket {
  double bytes;
  std::size_t first;  // the block that is first in it, whose gradients come last
};

std::vector<PlannedBucket> MemoryModel(AllReduceModel sums, BucketRule rule) {
  constexpr std::size_t kHead = kBlocks - 1;
  const bool is_cut = rule == BucketRule::kDdltraind;  // the last one
  if (sums == AllReduceModel::kFp32) {
    std::vector<PlannedBucket> buckets = {
        {8.196e6, kHead}, {31.502e6, 15}, {26.255e6, 14}, {26.550e6, 8}};
    if (!is_cut) {
      buckets.push_back({9.724e6, 0});
    } else {
      buckets.insert(buckets.end(), {{8.691e6, 4}, {1.033e6, 0}});
    }
    return buckets;
  }
  std::vector<PlannedBucket> buckets = {{4.096e6, kHead}, {28.836e6, 14}};
  if (!is_cut) {
    buckets.push_back({18.066e6, 0});
  } else {
    buckets.insert(buckets.end(), {{17.138e6, 4}, {0.928e6, 0}});
  }
  buckets.push_back({0.2329e6, 0});  // batch norms and biases, fp32
  return buckets;
}

}  // namespace

std::vector<Bucket> ResNet50Buckets(AllReduceModel sums, BucketRule rule,
                                    const BackwardTimes& times) {
  const double all = std::accumulate(times.begin(), times.end(), 0.0);
  std::vector<Bucket> buckets;
  for (const PlannedBucket& planned : MemoryModel(sums, rule)) {
    const auto first = times.begin() + static_cast<std::ptrdiff_t>(planned.first);
    buckets.push_back({planned.bytes, std::accumulate(first, times.end(), 0.0) / all});
  }
  return buckets;
}

}  // namespace scaling
