// SPDX-License-Identifier: Apache-2.0
//
// Which stretches of the flat gradient memory are all-reduced together, so that communication
// starts while backward still runs and no message is too small.  Pure: the same on every rank.

#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace trainer {

// Of messages.  The first two are those of PyTorch's DistributedDataParallel
// (torch/csrc/distributed/c10d/reducer.hpp): a small first bucket starts the communication early.
// No computation hides the last one, for it is complete when backward ends.
struct GradientBucketBytes {
  std::size_t first = std::size_t{1} << 20;
  std::size_t rest = std::size_t{25} << 20;
  std::size_t last = std::size_t{1} << 20;
};

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
// has reached its size: bytes.first for the first, bytes.rest for the others.  What is left over at
// the start, if it is more than bytes.last, is cut once more: at the latest boundary where it
// leaves no more than bytes.last to the last bucket and no less than bytes.first to the one before,
// if there is any.  When backward has completed everything from element `b` on, all buckets with
// begin >= b can start.
std::vector<GradientBucket> PlanGradientBuckets(std::span<const std::size_t> tensor_ends,
                                                std::size_t element_bytes,
                                                const GradientBucketBytes& bytes = {});

}  // namespace trainer
