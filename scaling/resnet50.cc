// SPDX-License-Identifier: Apache-2.0

#include "scaling/resnet50.h"

#include <cstddef>
#include <numeric>

namespace scaling {
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
