// SPDX-License-Identifier: Apache-2.0
//
// Makes a picture smaller, as Pillow's BILINEAR does: each new pixel is the mean of the old ones
// that it covers, and of as many around them, weighted by a triangle.  In whole numbers, so that
// every machine makes the same pixels.  Pure.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/data/images/image.h"

namespace trainer {

// The size whose shorter side is `shorter_side`, with the same proportions, rounded to whole
// pixels.  REQUIRES: 0 < shorter_side.
ImageSize SizeWithShorterSide(ImageSize size, int shorter_side);

// `pixels`: height x width x 3.  REQUIRES: no side of `target` is longer than that of `size`, and
// none is 0.
std::vector<std::uint8_t> Shrink(std::span<const std::uint8_t> pixels, ImageSize size,
                                 ImageSize target);

}  // namespace trainer
