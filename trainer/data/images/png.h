// SPDX-License-Identifier: Apache-2.0
//
// PNG decoding, by libpng where the build has it (png_absent.cc where not).  ImageNet has one such
// image, under the name of a JPEG.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/data/images/image.h"

namespace trainer {

struct DecodedPicture {
  ImageSize size;
  std::vector<std::uint8_t> pixels;  // height x width x 3, RGB
};

bool IsPng(std::span<const std::uint8_t> data);

// Of any depth and colours: the upper 8 bits of the values that are stored, as TensorFlow and PIL
// read them.  Gamma changes none, and what is transparent has the colour below.  Throws
// Error(EX_DATAERR) without the name of the image if it is damaged, has more pixels than JPEG
// images may (jpeg.h), or if this build has no libpng.
DecodedPicture DecodePng(std::span<const std::uint8_t> data);

}  // namespace trainer
