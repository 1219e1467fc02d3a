// SPDX-License-Identifier: Apache-2.0
//
// A tensor is a view: a description and a pointer.  It owns nothing; the memory behind it belongs
// to a Buffer that outlives it.  A back end is free to choose how a tensor lies in memory, and says
// so in the description.

#pragma once

#include <cstddef>
#include <memory>

#include "trainer/core/dtype.h"
#include "trainer/core/shape.h"

namespace trainer {

enum class Layout : std::uint8_t {
  kRowMajor,      // dense, the last dimension of the shape contiguous
  kChannelsLast,  // shape (N, C, H, W), memory dense as N, H, W, C
  kOpaque,        // known to the back end alone, described by `opaque`
};

struct TensorDesc {
  Shape shape;
  DType dtype = DType::kFloat32;
  Layout layout = Layout::kRowMajor;
  std::size_t bytes = 0;               // padding included; a multiple of SizeOf(dtype)
  std::shared_ptr<const void> opaque;  // set if and only if layout is kOpaque
};

// A dense row-major description of `shape`.
TensorDesc RowMajor(const Shape& shape, DType dtype);
// A dense N, H, W, C description of the image shape (N, C, H, W).
TensorDesc ChannelsLast(const Shape& shape, DType dtype);

struct Tensor {
  TensorDesc desc;
  void* data = nullptr;

  // The elements in memory order.  REQUIRES: T has the size of desc.dtype.
  template <typename T>
  T* As() const {
    return static_cast<T*>(data);
  }
  explicit operator bool() const { return data != nullptr; }
};

}  // namespace trainer
