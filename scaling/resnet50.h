// SPDX-License-Identifier: Apache-2.0
//
// The gradients of ResNet-50 as ddltraind sums them: which buckets there are, and when backward has
// completed each.  The trainer's own plan (comm/gradient_buckets.h) made these numbers, and the
// test resnet50_test holds them to it, so that ddlrun needs no trainer to predict one.

#pragma once

#include <cstdint>
#include <vector>

#include "scaling/step.h"

namespace scaling {

enum class Sums : std::uint8_t {
  kFp32,
  kHalf,  // --reduce_precision=16bit: 16 bits, but for batch norms and biases
};

// The second is that of PyTorch's DistributedDataParallel: the last bucket is not cut, so that up
// to 25 MB are summed when backward is over.
enum class BucketRule : std::uint8_t { kDdltraind, kPytorch };

std::vector<Bucket> ResNet50Buckets(Sums sums, BucketRule rule);

}  // namespace scaling
