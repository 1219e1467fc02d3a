// SPDX-License-Identifier: Apache-2.0
//
// JPEG encoding, by libjpeg-turbo, for generated data sets and for tests.  Pure.

#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "trainer/data/images/image.h"

namespace trainer {

// How the samples of a pixel are stored: RGB as YCbCr with halved colours, as cameras do; gray; or
// CMYK in Adobe's complement.
enum class JpegColors { kYcc, kGray, kCmyk };

struct JpegEncoding {
  int quality = 90;  // 1 to 100
  JpegColors colors = JpegColors::kYcc;
  bool progressive = false;
};

// `pixels`: height x width x 3 (kYcc), x 1 (kGray) or x 4 (kCmyk).
std::string EncodeJpeg(std::span<const std::uint8_t> pixels, ImageSize size,
                       const JpegEncoding& encoding);

}  // namespace trainer
