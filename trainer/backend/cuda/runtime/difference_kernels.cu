// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/runtime/block_sum.cuh"
#include "trainer/backend/cuda/runtime/difference_kernels.h"
#include "trainer/backend/cuda/runtime/element.cuh"

namespace trainer {
namespace {

template <typename T>
__global__ void SquaredDifferences(const T* a, const T* b, std::int64_t count,
                                   float (*partial)[kDifferenceBlocks]) {
  SynchronizeGridDependencies();
  float differences = 0;
  float squares = 0;
  for (std::int64_t i = Item(); i < count; i += std::int64_t{kDifferenceBlocks} * kThreads) {
    const float right = ToFloat(b[i]);
    const float difference = ToFloat(a[i]) - right;
    differences += difference * difference;
    squares += right * right;
  }
  // Of a few values most blocks have none.
  if (std::int64_t{blockIdx.x} * kThreads < count) {
    differences = SumOverBlock<kThreads>(differences);
    squares = SumOverBlock<kThreads>(squares);
  }
  if (threadIdx.x != 0) return;
  partial[0][blockIdx.x] = differences;
  partial[1][blockIdx.x] = squares;
}

}  // namespace

void SumSquaredDifferences(const void* a, const void* b, DType dtype, std::int64_t count,
                           float (*partial)[kDifferenceBlocks], CUstream_st* stream) {
  WithElement(dtype, [&](auto zero) {
    using T = decltype(zero);
    Launch(SquaredDifferences<T>, kDifferenceBlocks, kThreads, stream, static_cast<const T*>(a),
           static_cast<const T*>(b), count, partial);
  });
}

}  // namespace trainer
