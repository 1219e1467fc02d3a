// SPDX-License-Identifier: Apache-2.0
//
// CUDA's additions to C++ that kernels of trainer/backend/cuda use, as plain C++.  What is not here
// does not compile: add it, with the meaning that the CUDA C++ Programming Guide gives it.

#pragma once

#include <math.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tests/trainer/backend/cuda_emulator/run.h"

// NOLINTBEGIN(bugprone-reserved-identifier): these are the names of CUDA
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
// shared_memory.h says why.  `used`: others write to it behind the compiler's back.
#define __shared__ static thread_local __attribute__((used))

using std::max;
using std::min;

// The place of a call is where the caller stands: an argument that callers leave out.
inline void __syncthreads(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  cuda_emulator::SyncBlock({file, line});
}

namespace cuda_emulator {

template <typename T>
T Shuffle(unsigned mask, T value, unsigned source, Place place) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(std::uint64_t));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = Exchange(mask, bits, source, place);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

}  // namespace cuda_emulator

inline void __syncwarp(unsigned mask = ~0U, const char* file = __builtin_FILE(),
                       int line = __builtin_LINE()) {
  cuda_emulator::Exchange(mask, 0, cuda_emulator::Lane(), {file, line});
}

template <typename T>
T __shfl_sync(unsigned mask, T value, int lane, const char* file = __builtin_FILE(),
              int line = __builtin_LINE()) {
  return cuda_emulator::Shuffle(mask, value, static_cast<unsigned>(lane) % 32, {file, line});
}

template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  const unsigned source = cuda_emulator::Lane() ^ static_cast<unsigned>(lanes);
  return cuda_emulator::Shuffle(mask, value, source % 32, {file, line});
}

// Past the end of the warp: the lane's own value.
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned lanes, const char* file = __builtin_FILE(),
                   int line = __builtin_LINE()) {
  const unsigned lane = cuda_emulator::Lane();
  return cuda_emulator::Shuffle(mask, value, lane + lanes < 32 ? lane + lanes : lane, {file, line});
}

// One thread runs at a time: nothing comes between reading and writing.
template <typename T>
T atomicAdd(T* address, T value) {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, int> || std::is_same_v<T, unsigned>);
  const T old = *address;
  *address += value;
  return old;
}
inline int atomicMax(int* address, int value) {
  const int old = *address;
  *address = max(old, value);
  return old;
}

template <typename T>
T __ldg(const T* address) {
  return *address;
}

inline float rsqrtf(float x) { return 1.0F / sqrtf(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
// NOLINTEND(bugprone-reserved-identifier)
