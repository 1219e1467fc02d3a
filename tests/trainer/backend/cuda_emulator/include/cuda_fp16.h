// SPDX-License-Identifier: Apache-2.0
//
// Stands in for NVIDIA's header of this name: __half as storage, and its conversions bit by bit as
// a GPU does them (to nearest, ties to even; what is not a number becomes 0x7FFF or 0x7FFFFFFF).

#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "tests/trainer/backend/cuda_emulator/vector_types.h"

// NOLINTBEGIN(readability-identifier-naming): CUDA's names
struct __half {
  unsigned short __x;
};
struct alignas(4) __half2 {
  __half x, y;
};
// NOLINTEND(readability-identifier-naming)

constexpr unsigned short __half_as_ushort(__half half) { return half.__x; }
constexpr __half __ushort_as_half(unsigned short bits) { return {bits}; }

inline float __half2float(__half half) {
  const unsigned sign = (half.__x & 0x8000U) << 16;
  const unsigned exponent = half.__x >> 10 & 0x1FU;
  const unsigned mantissa = half.__x & 0x3FFU;
  if (exponent == 0x1F)
    return std::bit_cast<float>(mantissa != 0 ? 0x7FFFFFFFU : sign | 0x7F800000U);
  // Subnormals are multiples of 2^-24: exact in float.
  if (exponent == 0)
    return std::copysign(static_cast<float>(mantissa) * 0x1p-24F, std::bit_cast<float>(sign));
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}

inline __half __float2half_rn(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<unsigned short>(bits >> 16 & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) return {0x7FFF};
  // From 65520, half way between the largest half and the next power of two.
  if (magnitude >= 0x477FF000U) return {static_cast<unsigned short>(sign | 0x7C00U)};
  std::uint32_t mantissa = magnitude & 0x7FFFFFU;
  std::uint32_t dropped = 13;
  std::uint32_t base = 0;
  if (magnitude >=
      0x38800000U) {  // 2^-14: normal; a carry out of the mantissa is the next exponent
    base = ((magnitude >> 23) - 112) << 10;
  } else if (magnitude > 0x33000000U) {  // more than half of 2^-24
    mantissa |= 0x800000U;
    dropped = 126 - (magnitude >> 23);
  } else {
    return {sign};
  }
  const std::uint32_t half_way = 1U << (dropped - 1);
  const std::uint32_t rest = mantissa & ((1U << dropped) - 1);
  std::uint32_t kept = base + (mantissa >> dropped);
  if (rest > half_way || (rest == half_way && (kept & 1U) != 0)) ++kept;
  return {static_cast<unsigned short>(sign | kept)};
}

inline float2 __half22float2(__half2 pair) { return {__half2float(pair.x), __half2float(pair.y)}; }
inline __half2 __floats2half2_rn(float x, float y) {
  return {__float2half_rn(x), __float2half_rn(y)};
}
