// SPDX-License-Identifier: Apache-2.0
//
// Stands in for NVIDIA's header of this name: __nv_bfloat16 as storage, and its conversions bit by
// bit as a GPU does them (to nearest, ties to even; what is not a number becomes 0x7FFF).

#pragma once

#include <bit>
#include <cstdint>

#include "tests/trainer/backend/cuda_emulator/vector_types.h"

// NOLINTBEGIN(readability-identifier-naming): CUDA's names
struct __nv_bfloat16 {
  unsigned short __x;
};
struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};
// NOLINTEND(readability-identifier-naming)

constexpr unsigned short __bfloat16_as_ushort(__nv_bfloat16 value) { return value.__x; }
constexpr __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) { return {bits}; }

inline float __bfloat162float(__nv_bfloat16 value) {
  return std::bit_cast<float>(std::uint32_t{value.__x} << 16);
}

inline __nv_bfloat16 __float2bfloat16_rn(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return {0x7FFF};
  // A carry out of the mantissa is the next exponent, and past the largest number infinity.
  return {static_cast<unsigned short>((bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16)};
}

inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
  return {__float2bfloat16_rn(x), __float2bfloat16_rn(y)};
}
