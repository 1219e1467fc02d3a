// SPDX-License-Identifier: Apache-2.0
//
// The logical shape of a tensor: up to four dimensions, outermost first.  Images are (N, C, H, W),
// filters (K, C, R, S) whatever their order in memory; that is the layout's business
// (core/tensor.h).

#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace trainer {

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

}  // namespace trainer
