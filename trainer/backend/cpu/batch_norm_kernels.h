// SPDX-License-Identifier: Apache-2.0
//
// The loops of batch norm over one chunk: one image, one block of channels (channel_blocks.h), as
// `rows` rows of `block` neighbouring channels.  Arrays named after a per-channel quantity hold
// `block` values.  Pure, deterministic.

#pragma once

#include <cstdint>

namespace trainer::detail {

struct ChunkShape {
  std::int64_t rows = 0;
  std::int64_t block = 0;
};

// mean[c] of the chunk's values, and deviation[c]: the sum of their squared distances from it.
void ChunkMoments(const ChunkShape& shape, const float* src, float* mean, float* deviation);

// dst = (src - mean) * factor + shift, then + residual unless that is null, then max(., 0) if relu.
void ChunkNormalise(const ChunkShape& shape, const float* src, const float* residual,
                    const float* mean, const float* factor, const float* shift, bool relu,
                    float* dst);

// Where a gradient passes the ReLU behind the normalisation.
enum class Gate : std::uint8_t {
  kOpen,  // everywhere
  kSrc,   // where ChunkNormalise gave more than 0 without residual: found again from src
  kDst,   // where dst is more than 0
};

// What the two passes of the gradient read.
struct ChunkGradient {
  const float* src = nullptr;
  const float* dst = nullptr;  // kDst only
  const float* diff_dst = nullptr;
  const float* mean = nullptr;
  const float* factor = nullptr;
  const float* shift = nullptr;
};

// With dy the gradient behind the gate: sum[c] of dy, dot[c] = sum of dy * (src - mean).  dy is
// written to gated unless that is null; it may be diff_dst.
void ChunkGradientSums(const ChunkShape& shape, Gate gate, const ChunkGradient& in, float* gated,
                       float* sum, float* dot);

// diff_src = factor * (dy - offset - (src - mean) * slope); diff_src may be diff_dst.
// REQUIRES: gate is not kDst.
void ChunkGradientApply(const ChunkShape& shape, Gate gate, const ChunkGradient& in,
                        const float* offset, const float* slope, float* diff_src);

}  // namespace trainer::detail
