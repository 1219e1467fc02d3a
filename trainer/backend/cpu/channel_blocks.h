// SPDX-License-Identifier: Apache-2.0
//
// The layouts of image tensors that this back end meets are one family, dense (N, C/B, H, W, B):
// B = 1 is row-major, B = C channels last, 8 and 16 are what oneDNN's vector kernels choose.  So a
// loop over one image and one block of channels is a loop over H*W rows of B neighbours.

#pragma once

#include <cstddef>
#include <cstdint>

#include "trainer/core/tensor.h"

namespace trainer {

struct ChannelBlocks {
  std::int64_t batch = 0;
  std::int64_t channels = 0;
  std::int64_t blocks = 0;  // the last may hold padding channels, which are zero
  std::int64_t rows = 0;    // H * W
  std::int64_t block = 0;   // B

  std::int64_t padded_channels() const { return blocks * block; }
  // Index of the first element of block b of image n; rows * block elements follow.
  std::int64_t offset(std::int64_t n, std::int64_t b) const {
    return (n * blocks + b) * rows * block;
  }
};

// `desc` is (N, C, H, W), fp32.  Throws a failed DDL_CHECK for a layout outside the family.
ChannelBlocks ChannelBlocksOf(const TensorDesc& desc);

}  // namespace trainer
