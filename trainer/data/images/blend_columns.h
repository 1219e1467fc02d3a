// SPDX-License-Identifier: Apache-2.0
//
// The inner loop of bilinear interpolation (resize.h): one output row out of a row whose pixels
// have 8 bits after the point.  Pure.

#pragma once

#include <cstdint>
#include <span>

namespace trainer {

inline constexpr int kOneWeight = 256;  // the weight 1

// Two neighbours, and the weight of the second, 0 to kOneWeight.
struct Tap {
  int first;
  int second;
  int weight;
};

// `row` has the value v as v - kRowBias, which fits into 16 bits with a sign, as vector units
// multiply them: channels of pixels, 0 to 255 * kOneWeight, three for each.
inline constexpr int kRowBias = 32768;

// Fills `out`, three bytes for each of `columns`, rounded to the nearest.  REQUIRES: `row` has the
// pixels that `columns` name and one element more.
void BlendColumns(const std::int16_t* row, std::span<const Tap> columns, std::uint8_t* out);
// The same without vector units.
void BlendColumnsOneByOne(const std::int16_t* row, std::span<const Tap> columns, std::uint8_t* out);

}  // namespace trainer
