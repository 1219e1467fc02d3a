// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/images/image_decoder.h"

#include <algorithm>
#include <array>
#include <utility>

#include "trainer/core/error.h"

namespace trainer {

bool IsPng(std::span<const std::uint8_t> data) {
  constexpr std::array<std::uint8_t, 8> kMagic = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  return data.size() >= kMagic.size() && std::ranges::equal(data.first(kMagic.size()), kMagic);
}

ImageSize ImageDecoder::ReadHeader(std::span<const std::uint8_t> file) {
  is_png_ = IsPng(file);
  if (is_png_) {
    picture_ = DecodePng(file);
    return picture_.size;
  }
  return jpeg_.ReadHeader(file);
}

void ImageDecoder::Decode(int reduction, const PixelBox& box, ImagePiece& piece) {
  if (!is_png_) {
    jpeg_.Decode(reduction, box, piece);
    return;
  }
  DDL_CHECK(reduction == 1);
  piece.box = {0, 0, picture_.size.width, picture_.size.height};
  piece.pixels = std::move(picture_.pixels);
}

}  // namespace trainer
