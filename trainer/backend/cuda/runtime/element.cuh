// SPDX-License-Identifier: Apache-2.0
//
// Elements of tensors on the device: stored as float, half or bfloat16, computed with as float.
// Rows of channels are read and written eight at a time (layout.h).

#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "trainer/backend/cuda/runtime/launch.cuh"
#include "trainer/core/dtype.h"
#include "trainer/core/error.h"

namespace trainer {

__device__ inline float ToFloat(float value) { return value; }
__device__ inline float ToFloat(__half value) { return __half2float(value); }
__device__ inline float ToFloat(__nv_bfloat16 value) { return __bfloat162float(value); }

__device__ inline void Assign(float& dst, float value) { dst = value; }
__device__ inline void Assign(__half& dst, float value) { dst = __float2half_rn(value); }
__device__ inline void Assign(__nv_bfloat16& dst, float value) { dst = __float2bfloat16_rn(value); }

// Two neighbours, as 32 bits of memory.
__device__ inline float2 ToFloats(unsigned word, __half /*type*/) {
  return __half22float2(*reinterpret_cast<const __half2*>(&word));
}
__device__ inline float2 ToFloats(unsigned word, __nv_bfloat16 /*type*/) {
  // CUDA 11.8 has no __bfloat1622float2 before Ampere.  A bfloat16 is the upper half of a float.
  return make_float2(__uint_as_float(word << 16), __uint_as_float(word & 0xffff0000U));
}
__device__ inline unsigned ToWord(float first, float second, __half /*type*/) {
  const __half2 pair = __floats2half2_rn(first, second);
  return *reinterpret_cast<const unsigned*>(&pair);
}
__device__ inline unsigned ToWord(float first, float second, __nv_bfloat16 /*type*/) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(first, second);
  return *reinterpret_cast<const unsigned*>(&pair);
}

// Eight elements as they are in memory, in registers.
template <typename T>
struct Eight {
  unsigned words[2 * sizeof(T)];
};

// Addresses are aligned to 16 bytes.
template <typename T>
__device__ inline Eight<T> LoadEight(const T* src) {
  Eight<T> eight;
  for (unsigned i = 0; i < sizeof(T) / 2; ++i) {
    const uint4 part = reinterpret_cast<const uint4*>(src)[i];
    eight.words[4 * i] = part.x;
    eight.words[4 * i + 1] = part.y;
    eight.words[4 * i + 2] = part.z;
    eight.words[4 * i + 3] = part.w;
  }
  return eight;
}
template <typename T>
__device__ inline void StoreEight(const Eight<T>& eight, T* dst) {
  for (unsigned i = 0; i < sizeof(T) / 2; ++i) {
    reinterpret_cast<uint4*>(dst)[i] = make_uint4(eight.words[4 * i], eight.words[4 * i + 1],
                                                  eight.words[4 * i + 2], eight.words[4 * i + 3]);
  }
}

template <typename T>
__device__ inline void Widen(const Eight<T>& eight, float (&values)[8]) {
  for (int i = 0; i < 4; ++i) {
    const float2 pair = ToFloats(eight.words[i], T{});
    values[2 * i] = pair.x;
    values[2 * i + 1] = pair.y;
  }
}
__device__ inline void Widen(const Eight<float>& eight, float (&values)[8]) {
  for (int i = 0; i < 8; ++i) values[i] = __uint_as_float(eight.words[i]);
}
template <typename T>
__device__ inline Eight<T> Narrow(const float (&values)[8]) {
  Eight<T> eight;
  for (int i = 0; i < 4; ++i) eight.words[i] = ToWord(values[2 * i], values[2 * i + 1], T{});
  return eight;
}
template <>
__device__ inline Eight<float> Narrow<float>(const float (&values)[8]) {
  Eight<float> eight;
  for (int i = 0; i < 8; ++i) eight.words[i] = __float_as_uint(values[i]);
  return eight;
}

template <typename T>
__device__ inline void Load8(const T* src, float (&values)[8]) {
  Widen(LoadEight(src), values);
}
template <typename T>
__device__ inline void Store8(const float (&values)[8], T* dst) {
  StoreEight(Narrow<T>(values), dst);
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
