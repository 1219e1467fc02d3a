// SPDX-License-Identifier: Apache-2.0

#include "trainer/core/tensor.h"

#include <algorithm>

#include "trainer/core/error.h"

namespace trainer {

Shape::Shape(std::initializer_list<std::int64_t> dims) : rank_(static_cast<int>(dims.size())) {
  DDL_CHECK(rank_ <= kMaxRank);
  DDL_CHECK(std::all_of(dims.begin(), dims.end(), [](std::int64_t dim) { return dim >= 0; }));
  std::copy(dims.begin(), dims.end(), dims_.begin());
}

std::int64_t Shape::elements() const {
  std::int64_t product = 1;
  for (int axis = 0; axis < rank_; ++axis) product *= (*this)[axis];
  return product;
}

std::string ToString(const Shape& shape) {
  std::string text = "(";
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (axis > 0) text += ", ";
    text += std::to_string(shape[axis]);
  }
  return text + ")";
}

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
