// SPDX-License-Identifier: Apache-2.0

#include "ddldata/stored_image.h"

#include <algorithm>

#include "ddldata/jpeg_encoder.h"
#include "ddldata/shrink.h"

namespace trainer {
namespace {

constexpr int kQualityOfConverted = 100;  // that of TensorFlow's converter

}  // namespace

StoredImage ImageStore::Store(std::span<const std::uint8_t> file) {
  const ImageSize size = decoder_.ReadHeader(file);
  decoder_.Decode(1, {0, 0, size.width, size.height}, piece_);
  const bool is_large =
      options_.shorter_side > 0 && std::min(size.width, size.height) > options_.shorter_side;
  if (is_large) {
    const ImageSize target = SizeWithShorterSide(size, options_.shorter_side);
    const auto pixels = Shrink(piece_.pixels, size, target);
    return {EncodeJpeg(pixels, target, {.quality = options_.quality}), target};
  }
  if (decoder_.is_plain_jpeg()) return {std::string(file.begin(), file.end()), size};
  return {EncodeJpeg(piece_.pixels, size, {.quality = kQualityOfConverted}), size};
}

}  // namespace trainer
