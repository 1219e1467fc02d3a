// SPDX-License-Identifier: Apache-2.0
//
// The inner loops of the ops that oneDNN has no fast counterpart of.  loops.cc is compiled once for
// each instruction set, so that the rest of the program can stay generic; one set of loops is
// chosen when it is first asked for.  Pure, one thread, deterministic.

#pragma once

#include <cstddef>
#include <cstdint>

#include "trainer/backend/ops.h"

namespace trainer::detail {

// One image, one block of channels (onednn.h): `rows` rows of `block` neighbouring
// channels. Arrays named after a quantity of a channel hold `block` values.
struct ChunkShape {
  std::int64_t rows = 0;
  std::int64_t block = 0;
};

// What normalising takes: dst = (src - mean) * factor + shift.
struct ChunkNorm {
  const float* mean = nullptr;
  const float* factor = nullptr;
  const float* shift = nullptr;
};

// Where a gradient passes the ReLU behind the normalisation.
enum class ReluMask : std::uint8_t {
  kOpen,  // everywhere
  kSrc,   // where normalise gave more than 0 without a residual: found again from src
  kDst,   // where dst is more than 0
};

// What the two passes of the gradient read.
struct ChunkGradient {
  const float* src = nullptr;
  const float* dst = nullptr;  // kDst only
  const float* diff_dst = nullptr;
  ChunkNorm norm;
};

struct Loops {
  // mean[c] of the chunk's values, and deviation[c]: the sum of their squared distances from it.
  void (*moments)(const ChunkShape& shape, const float* src, float* mean, float* deviation);

  // dst = norm(src), then + residual unless that is null, then max(., 0) if relu.
  void (*normalise)(const ChunkShape& shape, const ChunkNorm& norm, const float* src,
                    const float* residual, bool relu, float* dst);

  // With dy the gradient behind the gate: sum[c] of dy, dot[c] = sum of dy * (src - mean).  dy is
  // written to gated unless that is null; it may be diff_dst.
  void (*gradient_sums)(const ChunkShape& shape, ReluMask relu_mask, const ChunkGradient& in,
                        float* masked, float* sum, float* dot);

  // diff_src = factor * (dy - offset - (src - mean) * slope); diff_src may be diff_dst.
  // REQUIRES: gate is not kDst.
  void (*gradient_apply)(const ChunkShape& shape, ReluMask relu_mask, const ChunkGradient& in,
                         const float* offset, const float* slope, float* diff_src);

  // dst += src.
  void (*add)(const float* src, float* dst, std::size_t count);

  bool (*all_finite)(const float* values, std::size_t count);
  float (*sum_of_squares)(const float* values, std::size_t count);

  // The formulas of an Optimizer (backend/ops.h), decay included: whose momentum is of gradients,
  // or of gradients times the learning rate, in which a tensor's ratio is.
  void (*update)(const UpdateParameters& call, std::size_t count, const float* gradient,
                 float* weight, float* momentum);
  void (*update_with_rated_momentum)(const UpdateParameters& call, std::size_t count,
                                     const float* gradient, float* weight, float* momentum);
};

extern const Loops kGenericLoops;
extern const Loops kAvx2Loops;  // x86-64 only, as the next
extern const Loops kAvx512Loops;

// The fastest that this machine can run.
const Loops& BestLoops();
// "AVX-512", "AVX2" or "generic code".
const char* InstructionSetOfBestLoops();

}  // namespace trainer::detail
