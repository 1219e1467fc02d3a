// SPDX-License-Identifier: Apache-2.0
//
// Bilinear interpolation.  Pure.

#pragma once

#include <cstdint>
#include <span>

#include "trainer/data/images/augment.h"
#include "trainer/data/images/image.h"

namespace trainer {

// The inner loop of bilinear interpolation: one output row out of a row whose pixels
// have 8 bits after the point.  Pure.

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

// Fills `out`, `size` x `size` x 3, with the part of the image that `view` names.  Half-pixel
// centres (as PyTorch and TensorFlow 2; not TensorFlow 1's align_corners=False, which shifts the
// image by half a pixel), so that mirroring before or after makes no difference.  No antialiasing:
// the decoder has halved large images already.  Interpolation reads no pixel outside view.readable;
// weights have 8 bits. REQUIRES: `piece` covers the pixels of view.readable within one pixel of the
// view's rectangle.
void Resize(const ImagePiece& piece, const View& view, int size, std::span<std::uint8_t> out);

}  // namespace trainer
