// SPDX-License-Identifier: Apache-2.0
//
// Tensors: their shapes and descriptions, and the memory behind them.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>

#include "trainer/core/dtype.h"

namespace trainer {

// The logical shape of a tensor: up to four dimensions, outermost first.  Images are (N, C, H, W),
// filters (K, C, R, S) whatever their order in memory; that is the layout's business.
class Shape {
 public:
  static constexpr int kMaxRank = 4;

  Shape() = default;  // a scalar: rank 0, one element
  Shape(std::initializer_list<std::int64_t> dims);

  int rank() const { return rank_; }
  // REQUIRES: 0 <= axis < rank().
  std::int64_t operator[](int axis) const { return dims_[static_cast<std::size_t>(axis)]; }
  // Product of the dimensions.
  std::int64_t elements() const;

  bool operator==(const Shape&) const = default;

 private:
  std::array<std::int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

// "(64, 3, 7, 7)".
std::string ToString(const Shape& shape);

// Owns memory of a device, or of the host for the device's use.  Movable, not copyable: a copy
// would be a silent transfer.
class Buffer {
 public:
  Buffer() = default;
  Buffer(void* data, std::size_t bytes, std::function<void(void*)> release)
      : data_(data, std::move(release)), bytes_(bytes) {}

  std::byte* data() const { return static_cast<std::byte*>(data_.get()); }
  std::size_t bytes() const { return bytes_; }

 private:
  std::unique_ptr<void, std::function<void(void*)>> data_{nullptr, [](void*) {}};
  std::size_t bytes_ = 0;
};

// Gives memory, zeroed and aligned for any plain type; the host's unless stated otherwise.
using AllocateMemory = std::function<Buffer(std::size_t bytes)>;

inline Buffer AllocateOrdinaryMemory(std::size_t bytes) {
  return {new std::byte[bytes](), bytes,
          [](void* memory) { delete[] static_cast<std::byte*>(memory); }};
}

// A tensor is a view: a description and a pointer.  It owns nothing; the memory behind it belongs
// to a Buffer that outlives it.  A back end is free to choose how a tensor lies in memory, and says
// so in the description.
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
