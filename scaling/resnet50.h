// SPDX-License-Identifier: Apache-2.0
//
// The gradients of ResNet-50 as ddltraind sums them: which buckets there are, and when backward has
// completed each.  The trainer's own plan (comm/gradient_buckets.h) made these numbers, and the
// test resnet50_test holds them to it, so that ddlrun needs no trainer to predict one.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "scaling/step.h"

namespace scaling {

enum class AllReduceModel : std::uint8_t {
  kFp32,
  kHalf,  // --reduce_precision=16bit: 16 bits, but for batch norms and biases
};

// The second is that of PyTorch's DistributedDataParallel: the last bucket is not cut, so that up
// to 25 MB are summed when backward is over.
enum class BucketRule : std::uint8_t { kDdltraind, kPytorch };

// Where gradients come from, as forward meets it: the stem, the 16 bottlenecks, the head.
inline constexpr std::size_t kBlocks = 18;

// How long backward takes in each block, in any unit.
using BackwardTimes = std::array<double, kBlocks>;

// In proportion to the values that a block's convolutions write, since memory is what bounds them.
// They add up to 1.
inline constexpr BackwardTimes kTypicalBackward = {0.0722, 0.1806, 0.1083, 0.1083, 0.1174, 0.0542,
                                                   0.0542, 0.0542, 0.0587, 0.0271, 0.0271, 0.0271,
                                                   0.0271, 0.0271, 0.0293, 0.0136, 0.0135, 0};

std::vector<Bucket> ResNet50Buckets(AllReduceModel sums, BucketRule rule,
                                    const BackwardTimes& times = kTypicalBackward);

}  // namespace scaling
