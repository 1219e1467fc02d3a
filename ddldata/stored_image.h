// SPDX-License-Identifier: Apache-2.0
//
// From the file of an image to the JPEG that a record stores, as TensorFlow's
// build_imagenet_data.py does it: a JPEG stays as it is, byte for byte; CMYK and PNG, which readers
// do not expect, become RGB JPEGs of quality 100.  Beyond that, large images can be made smaller.

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trainer/data/images/image.h"
#include "trainer/data/images/image_loader.h"

namespace trainer {

struct StoredImageOptions {
  int shorter_side = 0;  // pixels: images that are larger are made that small; 0: none
  int quality = 90;      // of those that are made smaller, 1 to 100
};

struct StoredImage {
  std::string encoded;  // the JPEG file
  ImageSize size;
  ImageSize size_before;  // of the file that was given
};

// Keeps its memory from image to image.  Not thread-safe: one per thread.
class ImageStore {
 public:
  explicit ImageStore(const StoredImageOptions& options) : options_(options) {}

  // Decodes the image whole, so that a damaged one is found.  Throws Error(EX_DATAERR) without the
  // name of the image if it is damaged, or neither JPEG nor PNG.
  StoredImage Store(std::span<const std::uint8_t> file);

 private:
  StoredImageOptions options_;
  ImageDecoder decoder_;
  ImagePiece piece_;
};

// The size whose shorter side is `shorter_side`, with the same proportions, rounded to whole
// pixels.  REQUIRES: 0 < shorter_side.
ImageSize SizeWithShorterSide(ImageSize size, int shorter_side);

// Makes a picture smaller, as Pillow's BILINEAR does: each new pixel is the mean of the old ones
// that it covers, and of as many around them, weighted by a triangle.  In whole numbers, so that
// every machine makes the same pixels.  Pure.  `pixels`: height x width x 3.  REQUIRES: no side of
// `target` is longer than that of `size`, and none is 0.
std::vector<std::uint8_t> Shrink(std::span<const std::uint8_t> pixels, ImageSize size,
                                 ImageSize target);

// How the samples of a pixel are stored: RGB as YCbCr with halved colours, as cameras do; gray; or
// CMYK in Adobe's complement.
enum class JpegColors { kYcc, kGray, kCmyk };

struct JpegEncoding {
  int quality = 90;  // 1 to 100
  JpegColors colors = JpegColors::kYcc;
  bool progressive = false;
};

// By libjpeg-turbo.  Pure.  `pixels`: height x width x 3 (kYcc), x 1 (kGray) or x 4 (kCmyk).
std::string EncodeJpeg(std::span<const std::uint8_t> pixels, ImageSize size,
                       const JpegEncoding& encoding);

}  // namespace trainer
