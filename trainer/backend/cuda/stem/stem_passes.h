// SPDX-License-Identifier: Apache-2.0
//
// The stem in passes that never write the result of its convolution: they compute it again wherever
// it is needed, by tensor cores, and keep it in registers and shared memory.  All queue on
// `stream`; sums are fp32 and in the same order each time.

#pragma once

#include <cstdint>

#include "trainer/backend/cuda/runtime/tensor_cores.h"
#include "trainer/backend/cuda/stem/stem_kernels.h"

namespace trainer {

// Of one stem.
struct StemSize {
  StemImages images;  // the result of the convolution
  NormShape norm;     // the same
  TensorCores cores = TensorCores::kWholeWarp;
};

// Whether there are such passes: for 16-bit types that the tensor cores multiply, and 64 channels,
// some of which may be padding.
bool HasStemPasses(const StemSize& size);

// What the convolution reads.
struct StemOperands {
  const void* blocks = nullptr;  // TransformPixelsToBlocks
  const void* lines = nullptr;   // FilterToLines
};

// Floats of scratch for RunBnStats and RunConvolvedBackward.
std::int64_t StemScratchFloats(const StemSize& size);

// To `sums` what NormSource::sums is; the result as it is before it is rounded.
void RunBnStats(const StemSize& size, const StemOperands& operands, float* scratch, float* sums,
                CUstream_st* stream);

// As RunPooledNormForward.  call.norm: src.sums, of_batch, saved; the rest is not used.
void RunConvolvedForward(const StemSize& size, const StemOperands& operands,
                         const NormParameters& parameters, const PooledNormForward& call,
                         CUstream_st* stream);

// As RunPooledNormBackward, and then the gradient of the filter, (K, 3, 7, 7), instead of that of
// the convolution's result: call.norm.src and diff_src are not used.  call.norm.scratch: of
// NormScratchFloats and, behind them, StemScratchFloats.
void RunConvolvedBackward(const StemSize& size, const StemOperands& operands, const float* scale,
                          const PooledNormBackward& call, void* diff_filter, CUstream_st* stream);

}  // namespace trainer
