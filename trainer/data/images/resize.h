// SPDX-License-Identifier: Apache-2.0
//
// Bilinear interpolation.  Pure.

#pragma once

#include <cstdint>
#include <span>

#include "trainer/data/images/augment.h"
#include "trainer/data/images/image.h"

namespace trainer {

// Fills `out`, `size` x `size` x 3, with the part of the image that `view` names.  Half-pixel
// centres (as PyTorch and TensorFlow 2; not TensorFlow 1's align_corners=False, which shifts the
// image by half a pixel), so that mirroring before or after makes no difference.  No antialiasing:
// the decoder has halved large images already.  Interpolation reads no pixel outside view.readable;
// weights have 8 bits. REQUIRES: `piece` covers the pixels of view.readable within one pixel of the
// view's rectangle.
void Resize(const ImagePiece& piece, const View& view, int size, std::span<std::uint8_t> out);

}  // namespace trainer
