// SPDX-License-Identifier: Apache-2.0
//
// One value out of those of all threads of a block.

#pragma once

#include <cuda_runtime.h>

namespace trainer {

constexpr int kWarp = 32;

// `combine(a, b)` over the values of all `threads` (a multiple of 32, at most 1024) of the block,
// in the same order each time; every thread gets the result.  `empty` leaves the other unchanged.
template <int threads, typename Combine>
__device__ float OverBlock(float value, float empty, const Combine& combine) {
  __shared__ float of_warps[threads / kWarp];
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value = combine(value, __shfl_xor_sync(0xFFFFFFFFU, value, distance));
  }
  __syncthreads();  // the call before may still be read
  if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = value;
  __syncthreads();
  float all = empty;
  for (float of_warp : of_warps) all = combine(all, of_warp);
  return all;
}

struct Plus {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Larger {
  __device__ float operator()(float a, float b) const { return a > b ? a : b; }
};

template <int threads>
__device__ float SumOverBlock(float value) {
  return OverBlock<threads>(value, 0.0F, Plus());
}

}  // namespace trainer
