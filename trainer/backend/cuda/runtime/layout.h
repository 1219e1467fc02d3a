// SPDX-License-Identifier: Apache-2.0
//
// How tensors lie in the memory of the cuda back end.  Images and filters are channels last, with
// the channels padded by zeros to a multiple of 8, so that every kernel moves 16 bytes at a time
// and every convolution has a tensor-core engine.  Ops write the padding too: it is never anything
// but zero.  Everything else is dense and row-major.  Pure.

#pragma once

#include <cstdint>

#include "trainer/backend/cuda/runtime/copy_kernels.h"
#include "trainer/core/tensor.h"

namespace trainer {

inline constexpr std::int64_t kChannelBlock = 8;

constexpr std::int64_t PaddedChannels(std::int64_t channels) {
  return (channels + kChannelBlock - 1) / kChannelBlock * kChannelBlock;
}

// (N, C, H, W): in memory N, H, W, PaddedChannels(C).
TensorDesc CudaImages(const Shape& shape, DType dtype);

// (K, C, R, S): in memory PaddedChannels(K), R, S, PaddedChannels(C).
TensorDesc CudaFilter(const Shape& shape, DType dtype);

// Where the elements of a tensor of this back end are, for kernels.  A row-major tensor is one of
// single channels.
Places PlacesOf(const TensorDesc& desc);

}  // namespace trainer
