// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/tool/stored_image.h"

#include <algorithm>
#include <array>
#include <utility>

#include "trainer/data/tool/jpeg_encoder.h"
#include "trainer/data/tool/png.h"
#include "trainer/data/tool/shrink.h"

namespace trainer {
namespace {

constexpr int kQualityOfConverted = 100;  // that of TensorFlow's converter

}  // namespace

bool IsPng(std::span<const std::uint8_t> data) {
  constexpr std::array<std::uint8_t, 8> kMagic = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  return data.size() >= kMagic.size() && std::ranges::equal(data.first(kMagic.size()), kMagic);
}

StoredImage ImageStore::Store(std::span<const std::uint8_t> file) {
  ImageSize size;
  bool is_rgb_jpeg = false;
  if (IsPng(file)) {
    DecodedPicture picture = DecodePng(file);
    size = picture.size;
    piece_.pixels = std::move(picture.pixels);
  } else {
    size = decoder_.ReadHeader(file);
    is_rgb_jpeg = !decoder_.is_cmyk();
    decoder_.Decode(1, {0, 0, size.width, size.height}, piece_);
  }
  const bool is_large =
      options_.shorter_side > 0 && std::min(size.width, size.height) > options_.shorter_side;
  if (is_large) {
    const ImageSize target = SizeWithShorterSide(size, options_.shorter_side);
    const auto pixels = Shrink(piece_.pixels, size, target);
    return {EncodeJpeg(pixels, target, {.quality = options_.quality}), target};
  }
  if (is_rgb_jpeg) return {std::string(file.begin(), file.end()), size};
  return {EncodeJpeg(piece_.pixels, size, {.quality = kQualityOfConverted}), size};
}

}  // namespace trainer
