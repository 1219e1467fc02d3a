// SPDX-License-Identifier: Apache-2.0
//
// Where an element of the stem's filter is, as it is over pixels (7x7, 8 channels) and over blocks
// of 2x2 pixels (stem_kernels.h) of so many channels.

#pragma once

#include "trainer/backend/cuda/stem/stem_kernels.h"

namespace trainer {

inline constexpr int kPixelFilter = 7 * 7 * 8;
template <int channels>
inline constexpr int kBlockFilter = kBlockKernel* kBlockKernel* channels;

// -1: nowhere.
template <int channels>
__device__ inline int PlaceInPixels(int in_blocks) {
  const int channel = in_blocks % channels;
  const int tap = in_blocks / channels;
  const int r = tap / kBlockKernel * 2 + channel / 6 - 1;
  const int s = tap % kBlockKernel * 2 + channel / 3 % 2 - 1;
  if (channel >= kBlockChannels || r < 0 || s < 0) return -1;
  return (r * 7 + s) * 8 + channel % 3;
}

template <int channels>
__device__ inline int PlaceInBlocks(int in_pixels) {
  const int colour = in_pixels % 8;
  const int r = in_pixels / 8 / 7 + 1;
  const int s = in_pixels / 8 % 7 + 1;
  if (colour >= 3) return -1;
  return (r / 2 * kBlockKernel + s / 2) * channels + (r % 2 * 2 + s % 2) * 3 + colour;
}

}  // namespace trainer
