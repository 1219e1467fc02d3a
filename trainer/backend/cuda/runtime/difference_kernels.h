// SPDX-License-Identifier: Apache-2.0
//
// How far two tensors are from each other.

#pragma once

#include <cstdint>

#include "trainer/core/dtype.h"

struct CUstream_st;

namespace trainer {

// Queues on `stream`: the sum of the squares of a - b of `count` elements is that of the first half
// of `partial`, and the sum of the squares of b that of the second.
inline constexpr int kDifferenceBlocks = 256;
void SumSquaredDifferences(const void* a, const void* b, DType dtype, std::int64_t count,
                           float (*partial)[kDifferenceBlocks], CUstream_st* stream);

}  // namespace trainer
