// SPDX-License-Identifier: Apache-2.0
//
// Kernels of the stem alone: its convolution by way of space-to-depth, and its batch norm, ReLU and
// max pool in one pass each way.  All queue on `stream`; images and filters are as layout.h says.

#pragma once

#include <cstdint>

#include "trainer/backend/cuda/norms/batch_norm_kernels.h"
#include "trainer/backend/cuda/runtime/copy_kernels.h"

namespace trainer {

// A 7x7 convolution with stride 2 and padding 3 over 3 channels is a 4x4 convolution with stride 1
// over blocks of 2x2 pixels, 12 channels (space-to-depth, as MLPerf's TPU code has it): tensor
// cores compute on 16 channels at half the height and width instead of 8 with 3 in use.  Tap
// (r, s) of the one is tap ((r + 1) / 2, (s + 1) / 2) of the other, in channel
// ((r + 1) % 2 * 2 + (s + 1) % 2) * 3 + colour.
inline constexpr int kBlockChannels = 12;
inline constexpr int kBlockKernel = 4;
// Blocks across an image of `extent` pixels, those of the padding included: of zeros, 2 before and
// at least 1 behind.
constexpr std::int64_t BlocksAcross(std::int64_t extent) { return (extent + 1) / 2 + 3; }

// As TransformPixels, to blocks: N x BlocksAcross(H) x BlocksAcross(W) x 12.
void TransformPixelsToBlocks(const PixelsCall& call, DType dtype, void* dst, CUstream_st* stream);

// (K, 3, 7, 7) to (K, 12, 4, 4), and the gradient of the latter to that of the former; `filters`
// with their padding.
void FilterToBlocks(const void* filter, DType dtype, std::int64_t filters, void* blocks,
                    CUstream_st* stream);
void FilterFromBlocks(const void* blocks, DType dtype, std::int64_t filters, void* filter,
                      CUstream_st* stream);

// (K, 3, 7, 7) to (K, kFilterLine): the blocks' filter without the padding of its channels.
inline constexpr int kFilterLine = kBlockKernel * kBlockKernel * kBlockChannels;
void FilterToLines(const void* filter, DType dtype, std::int64_t filters, void* lines,
                   CUstream_st* stream);

// What goes into the pool, whose windows of 3x3 are 2 apart with 1 pixel of padding.
struct StemImages {
  std::int64_t samples = 0, height = 0, width = 0;
};
constexpr std::int64_t WindowsAcross(std::int64_t extent) { return (extent + 1) / 2; }

// Batch norm and ReLU of src and then the largest of each window, to dst.  For backward, all of the
// shape of dst: the element of src that was chosen, its place in the window, or kNobody where the
// ReLU stops it, and the same as a mask; null: nothing is kept.
inline constexpr std::uint8_t kNobody = 255;
struct PooledNormForward {
  NormForward norm;  // src; saved, scratch, of_batch; the rest is not used
  void* dst = nullptr;
  void* chosen = nullptr;
  std::uint8_t* winners = nullptr;
  std::uint8_t* mask = nullptr;
};
void RunPooledNormForward(const NormShape& norm, const StemImages& images,
                          const NormParameters& parameters, const PooledNormForward& call,
                          CUstream_st* stream);

struct PooledNormBackward {
  NormBackward norm;  // src, diff_src; diff_scale, diff_shift, saved, scratch, of_batch
  const void* diff_dst = nullptr;
  const void* chosen = nullptr;
  const std::uint8_t* winners = nullptr;
  const std::uint8_t* mask = nullptr;
};
// As far as it finds diff_scale, diff_shift and, at the beginning of scratch, the coefficients for
// diff_src (batch_norm::CoefficientsIn).
void RunPooledNormSums(const NormShape& norm, const StemImages& images, const float* scale,
                       const PooledNormBackward& call, CUstream_st* stream);
void RunPooledNormBackward(const NormShape& norm, const StemImages& images, const float* scale,
                           const PooledNormBackward& call, CUstream_st* stream);

}  // namespace trainer
