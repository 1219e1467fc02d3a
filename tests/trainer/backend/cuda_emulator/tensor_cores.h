// SPDX-License-Identifier: Apache-2.0
//
// The instructions of tensor cores that kernels of trainer/backend/cuda use, as the PTX ISA defines
// them: the section "Matrix Fragments" of each shape says which lane has which elements.  Words
// hold two neighbours, the first in the lower half.  Products are exact; they are added one after
// the other in fp32 (a GPU may add several at once, and cut off more).  All 32 lanes take part.

#pragma once

#include <chrono>

#include "tests/trainer/backend/cuda_emulator/run.h"

struct __half;         // NOLINT(bugprone-reserved-identifier): CUDA's names
struct __nv_bfloat16;  // NOLINT(bugprone-reserved-identifier)

namespace cuda_emulator {

// ldmatrix.sync.aligned.m8n8.x4[.trans].shared.b16: lane 8 * i + j has the address of row j of
// matrix i, 8 elements of 16 bits, aligned to 16 bytes.
void LoadMatrices(bool transposed, const void* row, unsigned (&words)[4], Place place);

// mma.sync.aligned.m16n8k16.row.col.f32.T.T.f32; sum: 4 of each lane, which it adds to.
template <typename T>
void MultiplyM16N8K16(const unsigned (&a)[4], const unsigned (&b)[2], float* sum, Place place);
extern template void MultiplyM16N8K16<__half>(const unsigned (&)[4], const unsigned (&)[2], float*,
                                              Place);
extern template void MultiplyM16N8K16<__nv_bfloat16>(const unsigned (&)[4], const unsigned (&)[2],
                                                     float*, Place);

// mma.sync.aligned.m8n8k4.(row|col).(row|col).f32.f16.f16.f32, four products of 8x8x4, each of two
// groups of four lanes; sum: 8 of each lane.
void MultiplyM8N8K4(bool a_by_column, bool b_by_column, const unsigned (&a)[2],
                    const unsigned (&b)[2], float* sum, Place place);

// What each product of a warp takes of the GPU's clock from now on, beside what emulating it takes;
// nothing to begin with.  For tests of what is slow: libraries are emulated without them.
void PretendProductsTake(std::chrono::steady_clock::duration time);

}  // namespace cuda_emulator
