// SPDX-License-Identifier: Apache-2.0
//
// Which stretches of the flat gradient memory are all-reduced together, so that communication
// starts while backward still runs and no message is too small.  Pure: the same on every rank.

#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace trainer {

// Sizes in bytes, from PyTorch's DistributedDataParallel (torch/csrc/distributed/c10d/reducer.hpp):
// a small first bucket starts the communication early.
inline constexpr std::size_t kFirstBucketBytes = std::size_t{1} << 20;
inline constexpr std::size_t kBucketBytes = std::size_t{25} << 20;

// Elements [begin, begin + count) of the flat gradient memory.
struct GradientBucket {
  std::size_t begin = 0;
  std::size_t count = 0;

  bool operator==(const GradientBucket&) const = default;
};

// The flat memory holds the gradients in the order of the forward pass; gradient i ends before
// element tensor_ends[i] (ascending; the last is the total), so backward completes them from the
// last to the first.  Returns buckets in the order in which they complete, from the end of the
// memory to its start, without gaps.  A bucket is closed at the first gradient boundary where it
// has reached its size: first_bytes for the first, bucket_bytes for the rest.  When backward has
// completed everything from element `b` on, all buckets with begin >= b can start.
std::vector<GradientBucket> PlanGradientBuckets(std::span<const std::size_t> tensor_ends,
                                                std::size_t element_bytes,
                                                std::size_t first_bytes = kFirstBucketBytes,
                                                std::size_t bucket_bytes = kBucketBytes);

}  // namespace trainer
