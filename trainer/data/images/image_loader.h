// SPDX-License-Identifier: Apache-2.0
//
// One view of an image, JPEG or PNG, as the pixels the network sees: decode no more and no finer
// than needed, resize.

#pragma once

#include <cstdint>
#include <span>

#include "trainer/data/images/augment.h"
#include "trainer/data/images/image.h"
#include "trainer/data/images/image_decoder.h"

namespace trainer {

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
