// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/runtime/layout.h"

namespace trainer {
namespace {

TensorDesc Padded(const Shape& shape, DType dtype, std::int64_t outer) {
  const std::int64_t elements = outer * shape[2] * shape[3] * PaddedChannels(shape[1]);
  return {shape, dtype, Layout::kChannelsLast, static_cast<std::size_t>(elements) * SizeOf(dtype),
          nullptr};
}

}  // namespace

TensorDesc CudaImages(const Shape& shape, DType dtype) { return Padded(shape, dtype, shape[0]); }

TensorDesc CudaFilter(const Shape& shape, DType dtype) {
  return Padded(shape, dtype, PaddedChannels(shape[0]));
}

Places PlacesOf(const TensorDesc& desc) {
  const Shape& shape = desc.shape;
  if (desc.layout == Layout::kRowMajor) {
    return {.outer = shape.elements(), .samples = shape.elements()};
  }
  const std::int64_t channels = PaddedChannels(shape[1]);
  const auto elements = static_cast<std::int64_t>(desc.bytes / SizeOf(desc.dtype));
  return {.outer = elements / (channels * shape[2] * shape[3]),
          .samples = shape[0],
          .used = shape[1],
          .channels = channels,
          .height = shape[2],
          .width = shape[3]};
}

}  // namespace trainer
