// SPDX-License-Identifier: Apache-2.0
//
// The instructions of tensor cores, one function each.  Which lane has which elements is in the PTX
// ISA, "Matrix Fragments for mma.m8n8k4 with .f16 floating point type", "... for mma.m16n8k16 with
// floating point type" and "Warp-level matrix load instruction: ldmatrix".  A word holds two
// neighbours, the first in its lower half.  All 32 lanes of the warp take part.
//
// Code for a GPU that lacks an instruction, or has a better one, is a trap: TensorCores says which
// of them the host may start.

#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <type_traits>

#include "trainer/backend/cuda/runtime/tensor_cores.h"

namespace trainer {

// Four matrices of 8x8, lane 8 * i + j with the address of row j of matrix i in shared memory;
// each lane gets two neighbours in a row of each matrix or, transposed, in a column.
template <bool transposed>
__device__ __forceinline__ void LoadMatrices(const void* row, unsigned (&words)[4]) {
#ifdef DDLRUN_CUDA_EMULATOR
  cuda_emulator::LoadMatrices(transposed, row, words, {__FILE__, __LINE__});
#elif __CUDA_ARCH__ >= 800
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  if constexpr (transposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(address)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(address)
                 : "memory");
  }
#else
  __trap();
#endif
}

// sum (4 of each lane, 16x8) += a (16x16) * b (16x8)
template <typename T>
__device__ __forceinline__ void MultiplyM16N8K16(const unsigned (&a)[4], const unsigned (&b)[2],
                                                 float* sum) {
#ifdef DDLRUN_CUDA_EMULATOR
  cuda_emulator::MultiplyM16N8K16<T>(a, b, sum, {__FILE__, __LINE__});
#elif __CUDA_ARCH__ >= 800
  if constexpr (std::is_same_v<T, __half>) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  } else {
    static_assert(std::is_same_v<T, __nv_bfloat16>);
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
#else
  __trap();
#endif
}

// Four products at once, each of the lanes 4 * i to 4 * i + 3 and those 16 further:
// sum (8 of each lane, 8x8) += a (8x4) * b (4x8), each by rows or by columns.
#ifdef DDLRUN_CUDA_EMULATOR
#elif __CUDA_ARCH__ < 800
#define DDLRUN_MULTIPLY_M8N8K4(layouts)                                                     \
  asm("mma.sync.aligned.m8n8k4." layouts                                                    \
      ".f32.f16.f16.f32 {%0,%1,%2,%3,%4,%5,%6,%7}, "                                        \
      "{%8,%9}, {%10,%11}, {%0,%1,%2,%3,%4,%5,%6,%7};"                                      \
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]), "+f"(sum[4]), "+f"(sum[5]), \
        "+f"(sum[6]), "+f"(sum[7])                                                          \
      : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(b[1]))
#endif
template <bool a_by_column, bool b_by_column>
__device__ __forceinline__ void MultiplyM8N8K4(const unsigned (&a)[2], const unsigned (&b)[2],
                                               float (&sum)[8]) {
#ifdef DDLRUN_CUDA_EMULATOR
  cuda_emulator::MultiplyM8N8K4(a_by_column, b_by_column, a, b, sum, {__FILE__, __LINE__});
#elif __CUDA_ARCH__ < 800
  if constexpr (a_by_column && b_by_column) {
    DDLRUN_MULTIPLY_M8N8K4("col.col");
  } else if constexpr (a_by_column) {
    DDLRUN_MULTIPLY_M8N8K4("col.row");
  } else if constexpr (b_by_column) {
    DDLRUN_MULTIPLY_M8N8K4("row.col");
  } else {
    DDLRUN_MULTIPLY_M8N8K4("row.row");
  }
#else
  __trap();
#endif
}

}  // namespace trainer
