// SPDX-License-Identifier: Apache-2.0
//
// What thread blocks have left behind of a filter's gradient, each its share, added up in the same
// order each time.

#pragma once

#include "trainer/backend/cuda/runtime/element.cuh"

namespace trainer {
namespace partial_filters {

constexpr int kLanes = 8;
constexpr int kColumns = 32;  // values of a thread block

// `partial`: of each of the `blocks` first `filter_values`, then what `sums` gets, `values` in all.
template <typename T>
__global__ void AddUp(const float* partial, int blocks, int values, int filter_values,
                      T* diff_filter, float* sums) {
  SynchronizeGridDependencies();
  __shared__ float of_lanes[kLanes][kColumns];
  const int lane = static_cast<int>(threadIdx.y);
  const int column = static_cast<int>(threadIdx.x);
  const int value = static_cast<int>(blockIdx.x) * kColumns + column;
  float own = 0;
#pragma unroll 4
  for (int block = lane; block < blocks; block += kLanes) {
    own += partial[static_cast<std::int64_t>(block) * values + value];
  }
  of_lanes[lane][column] = own;
  __syncthreads();
  if (lane > 0) return;
  for (int other = 1; other < kLanes; ++other) own += of_lanes[other][column];
  if (value < filter_values) {
    Assign(diff_filter[value], own);
  } else {
    sums[value - filter_values] = own;
  }
}

// `values` is a multiple of kColumns.
template <typename T>
void QueueAddUp(const float* partial, int blocks, int values, int filter_values, void* diff_filter,
                float* sums, cudaStream_t stream) {
  Launch(AddUp<T>, static_cast<unsigned>(values / kColumns), dim3(kColumns, kLanes), stream,
         partial, blocks, values, filter_values, static_cast<T*>(diff_filter), sums);
}

}  // namespace partial_filters
}  // namespace trainer
