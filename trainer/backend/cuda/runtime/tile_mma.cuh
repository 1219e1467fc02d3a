// SPDX-License-Identifier: Apache-2.0
//
// Products of tiles by a warp: a sum of 16x16 in fp32 and operands A of 16 x depth 16 and B of
// depth 16 x 16 in fp16 or bf16, from shared memory.
//
// A tile of an operand is 16 lines of two parts, each of eight neighbours at an address aligned to
// 16 bytes; where they lie is the caller's to say: `at(line, part)`.  K-major, as CUTLASS has it: a
// line is a row of A or a column of B, and goes along the depth.  MN-major: a line is one step of
// the depth, across the rows of A or the columns of B.
// No two lanes wait for the same bank of shared memory if any eight lines that follow each other,
// with one part each, are in different banks: lines 16 bytes apart, or 16 times an odd number.

#pragma once

#include "trainer/backend/cuda/runtime/tensor_cores.cuh"

namespace trainer {

enum class Side { kA, kB };
enum class Major { kK, kMN };

// What a lane has of a tile.  kWholeWarp: word i is what LoadMatrices gives of matrix i, which is
// half i % 2 of the edge and half i / 2 of the depth.  kQuadPairs: words 2 * i and 2 * i + 1 are
// those of depth 4 * i to 4 * i + 3.
template <typename T, TensorCores cores, Side side, Major major>
struct Operand {
  unsigned words[cores == TensorCores::kWholeWarp ? 4 : 8];
};

// What a lane has of a sum: TileRow(i) and TileColumn(i) say where values[i] is.  Values 2 * i and
// 2 * i + 1 are neighbours in a row.
struct TileSum {
  float values[8];
};

__device__ inline int TileLane() { return static_cast<int>(threadIdx.x) % 32; }
// Of the quad pairs 0 to 3, the first two have the left half of a sum, and those of even number the
// upper half.
__device__ inline int QuadPair() { return TileLane() / 4 % 4; }

template <TensorCores cores>
__device__ inline int TileRow(int i) {
  const int lane = TileLane();
  if constexpr (cores == TensorCores::kWholeWarp) return lane / 4 + i / 2 % 2 * 8;
  return QuadPair() % 2 * 8 + lane / 16 * 4 + (i & 2) + (lane & 1);
}
template <TensorCores cores>
__device__ inline int TileColumn(int i) {
  const int lane = TileLane();
  if constexpr (cores == TensorCores::kWholeWarp) return i / 4 * 8 + lane % 4 * 2 + i % 2;
  return QuadPair() / 2 * 8 + (i & 4) + (lane & 2) + (i & 1);
}

// at(line, part) -> const T*, for each lane as it asks.
template <typename T, TensorCores cores, Side side, Major major, typename At>
__device__ __forceinline__ void LoadOperand(const At& at, Operand<T, cores, side, major>& to) {
  const int lane = TileLane();
  constexpr bool kAlongDepth = major == Major::kK;
  if constexpr (cores == TensorCores::kWholeWarp) {
    const int edge = lane / 8 % 2;
    const int depth = lane / 16;
    const int in_half = lane % 8;
    const T* row = kAlongDepth ? at(edge * 8 + in_half, depth) : at(depth * 8 + in_half, edge);
    LoadMatrices<!kAlongDepth>(row, to.words);
  } else {
    const int half = side == Side::kA ? QuadPair() % 2 : QuadPair() / 2;
    if constexpr (kAlongDepth) {
      const int line = half * 8 + lane / 16 * 4 + lane % 4;
#pragma unroll
      for (int part = 0; part < 2; ++part) {
        const uint4 eight = *reinterpret_cast<const uint4*>(at(line, part));
        to.words[4 * part] = eight.x;
        to.words[4 * part + 1] = eight.y;
        to.words[4 * part + 2] = eight.z;
        to.words[4 * part + 3] = eight.w;
      }
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const T* four = at(4 * i + lane % 4, half) + lane / 16 * 4;
        const uint2 words = *reinterpret_cast<const uint2*>(four);
        to.words[2 * i] = words.x;
        to.words[2 * i + 1] = words.y;
      }
    }
  }
}

// The same from memory of any kind, slower; Major::kK.
template <typename T, TensorCores cores, Side side, typename At>
__device__ __forceinline__ void LoadOperandFromAnywhere(const At& at,
                                                        Operand<T, cores, side, Major::kK>& to) {
  if constexpr (cores == TensorCores::kWholeWarp) {
    const int lane = TileLane();
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const T* part = at(i % 2 * 8 + lane / 4, i / 2);
      to.words[i] = reinterpret_cast<const unsigned*>(part)[lane % 4];
    }
  } else {
    LoadOperand(at, to);
  }
}

// sum += a * b
template <typename T, TensorCores cores, Major of_a, Major of_b>
__device__ __forceinline__ void MultiplyAdd(const Operand<T, cores, Side::kA, of_a>& a,
                                            const Operand<T, cores, Side::kB, of_b>& b,
                                            TileSum& sum) {
  if constexpr (cores == TensorCores::kWholeWarp) {
#pragma unroll
    for (int right = 0; right < 2; ++right) {
      const unsigned half[2] = {b.words[right], b.words[2 + right]};
      MultiplyM16N8K16<T>(a.words, half, sum.values + 4 * right);
    }
  } else {
    static_assert(std::is_same_v<T, __half>, "quad pairs multiply fp16 only");
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const unsigned step_of_a[2] = {a.words[2 * i], a.words[2 * i + 1]};
      const unsigned step_of_b[2] = {b.words[2 * i], b.words[2 * i + 1]};
      MultiplyM8N8K4<of_a == Major::kMN, of_b == Major::kK>(step_of_a, step_of_b, sum.values);
    }
  }
}

}  // namespace trainer
