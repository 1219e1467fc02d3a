// SPDX-License-Identifier: Apache-2.0
//
// Elements of tensors on the device: stored as float, half or bfloat16, computed with as float.
// Rows of channels are read and written eight at a time (layout.h).

#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "trainer/backend/cuda/launch.cuh"
#include "trainer/core/dtype.h"
#include "trainer/core/error.h"

namespace trainer {

__device__ inline float ToFloat(float value) { return value; }
__device__ inline float ToFloat(__half value) { return __half2float(value); }
__device__ inline float ToFloat(__nv_bfloat16 value) { return __bfloat162float(value); }

__device__ inline void Assign(float& dst, float value) { dst = value; }
__device__ inline void Assign(__half& dst, float value) { dst = __float2half_rn(value); }
__device__ inline void Assign(__nv_bfloat16& dst, float value) { dst = __float2bfloat16_rn(value); }

template <typename T>
struct alignas(16) Eight {
  T values[8];
};

// `src` and `dst` are aligned to 16 bytes.
template <typename T>
__device__ inline void Load8(const T* src, float (&values)[8]) {
  const Eight<T> eight = *reinterpret_cast<const Eight<T>*>(src);
  for (int i = 0; i < 8; ++i) values[i] = ToFloat(eight.values[i]);
}
template <typename T>
__device__ inline void Store8(const float (&values)[8], T* dst) {
  Eight<T> eight;
  for (int i = 0; i < 8; ++i) Assign(eight.values[i], values[i]);
  *reinterpret_cast<Eight<T>*>(dst) = eight;
}

// Calls call(T{}) with the C++ type of `dtype`.
template <typename Call>
void WithElement(DType dtype, const Call& call) {
  switch (dtype) {
    case DType::kFloat32:
      return call(float{});
    case DType::kFloat16:
      return call(__half{});
    case DType::kBFloat16:
      return call(__nv_bfloat16{});
    default:
      DDL_CHECK(!"an element type that computes");
  }
}

// One thread for each of `count` items.
constexpr int kThreads = 256;
inline dim3 BlocksFor(std::int64_t count) {
  return dim3(static_cast<unsigned>((count + kThreads - 1) / kThreads));
}
__device__ inline std::int64_t Item() {
  return static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
}

}  // namespace trainer
