// SPDX-License-Identifier: Apache-2.0
//
// One view of an image, JPEG or PNG, as the pixels the network sees: decode no more and no finer
// than needed, resize.

#pragma once

#include <cstdint>
#include <span>

#include "trainer/data/images/augment.h"
#include "trainer/data/images/image.h"
#include "trainer/data/images/jpeg.h"
#include "trainer/data/images/png.h"

namespace trainer {

// The one reader of images, whatever their files are called: JPEG (jpeg.h) and, where the build has
// libpng, PNG (png.h).  Records, conversions and predictions all read by it.
//
// Errors are Error(EX_DATAERR) without the name of the image; other kinds of images are named, as
// far as their first bytes tell.

// Decodes one image after another, keeping its memory.  Not thread-safe: one per thread.
class ImageDecoder {
 public:
  // Begins an image: its size.  `file` must live until the image's Decode returns.
  ImageSize ReadHeader(std::span<const std::uint8_t> file);
  // Of the image of the last ReadHeader: whether its file is what readers of records expect, a JPEG
  // that is not CMYK.
  bool is_plain_jpeg() const { return !is_png_ && !jpeg_.is_cmyk(); }
  // The largest reduction that Decode takes.
  int max_reduction() const { return is_png_ ? 1 : 8; }

  // As JpegDecoder::Decode.  REQUIRES: reduction <= max_reduction().
  void Decode(int reduction, const PixelBox& box, ImagePiece& piece);

 private:
  JpegDecoder jpeg_;
  bool is_png_ = false;
  DecodedPicture picture_;  // of a PNG, whole
};

// Keeps its buffers from image to image.  Not thread-safe: one per thread.  Errors are
// Error(EX_DATAERR) without the name of the image.
class ImageLoader {
 public:
  // Begins an image: its size.  `file` must live until the image's Load returns.
  ImageSize ReadHeader(std::span<const std::uint8_t> file);

  // Writes `size` x `size` x 3 bytes of RGB of `view` to `pixels`; mirroring is left to the
  // caller.  Once for each ReadHeader.
  void Load(const View& view, int size, std::span<std::uint8_t> pixels);

 private:
  ImageDecoder decoder_;
  ImagePiece piece_;
};

}  // namespace trainer
