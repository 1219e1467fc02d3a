// SPDX-License-Identifier: Apache-2.0

#include "trainer/core/tensor.h"

#include "trainer/core/error.h"

namespace trainer {
namespace {

TensorDesc Dense(const Shape& shape, DType dtype, Layout layout) {
  TensorDesc desc;
  desc.shape = shape;
  desc.dtype = dtype;
  desc.layout = layout;
  desc.bytes = static_cast<std::size_t>(shape.elements()) * SizeOf(dtype);
  return desc;
}

}  // namespace

TensorDesc RowMajor(const Shape& shape, DType dtype) {
  return Dense(shape, dtype, Layout::kRowMajor);
}

TensorDesc ChannelsLast(const Shape& shape, DType dtype) {
  DDL_CHECK(shape.rank() == 4);
  return Dense(shape, dtype, Layout::kChannelsLast);
}

}  // namespace trainer
