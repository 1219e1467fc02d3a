// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/images/resize.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "trainer/core/error.h"
#include "trainer/data/images/blend_columns.h"

namespace trainer {
namespace {

// For each of `size` output places along one axis, indices into the piece, which begins at `origin`
// and has `extent` pixels; only those in [low, high] may be read.
std::vector<Tap> MakeTaps(double begin, double length, int size, int low, int high, int origin,
                          int extent) {
  std::vector<Tap> taps(static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) {
    const double centre = begin + (i + 0.5) * length / size - 0.5;
    const double floor = std::floor(centre);
    const int left = static_cast<int>(floor);
    Tap& tap = taps[static_cast<std::size_t>(i)];
    tap.first = std::clamp(left, low, high) - origin;
    tap.second = std::clamp(left + 1, low, high) - origin;
    tap.weight = static_cast<int>(std::lrint((centre - floor) * kOneWeight));
    DDL_CHECK(tap.first >= 0 && tap.second < extent);
  }
  return taps;
}

// row[i] = the rows `top` and `bottom` blended, as BlendColumns wants it.
void BlendRows(const std::uint8_t* top, const std::uint8_t* bottom, int weight, std::size_t length,
               std::int16_t* row) {
  for (std::size_t i = 0; i < length; ++i) {
    row[i] =
        static_cast<std::int16_t>(top[i] * (kOneWeight - weight) + bottom[i] * weight - kRowBias);
  }
}

}  // namespace

void Resize(const ImagePiece& piece, const View& view, int size, std::span<std::uint8_t> out) {
  const auto stride = static_cast<std::size_t>(piece.box.width) * 3;
  DDL_CHECK(out.size() == static_cast<std::size_t>(size) * static_cast<std::size_t>(size) * 3);
  const PixelBox& readable = view.readable;
  const auto columns = MakeTaps(view.x, view.width, size, readable.x,
                                readable.x + readable.width - 1, piece.box.x, piece.box.width);
  const auto rows = MakeTaps(view.y, view.height, size, readable.y,
                             readable.y + readable.height - 1, piece.box.y, piece.box.height);
  std::vector<std::int16_t> blended(stride + 1);
  std::uint8_t* destination = out.data();
  for (const Tap& row : rows) {
    const std::uint8_t* pixels = piece.pixels.data();
    BlendRows(pixels + static_cast<std::size_t>(row.first) * stride,
              pixels + static_cast<std::size_t>(row.second) * stride, row.weight, stride,
              blended.data());
    BlendColumns(blended.data(), columns, destination);
    destination += columns.size() * 3;
  }
}

}  // namespace trainer
