// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/images/image_loader.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "trainer/core/error.h"
#include "trainer/data/images/augment.h"

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

namespace {

// The largest reduction by the decoder that leaves at least as many pixels as the output has.
// (Reductions that are no powers of two are slower than full decoding.)
int ChooseReduction(const View& view, int size, int max) {
  int reduction = max;
  while (reduction > 1 &&
         std::min(view.width, view.height) < static_cast<double>(size) * reduction) {
    reduction /= 2;
  }
  return reduction;
}

int DivideUp(int value, int divisor) { return (value + divisor - 1) / divisor; }

// The view in pixels of the reduced image.
View Reduced(const View& view, int reduction) {
  const PixelBox& box = view.readable;
  const int x = box.x / reduction;
  const int y = box.y / reduction;
  return {view.x / reduction,
          view.y / reduction,
          view.width / reduction,
          view.height / reduction,
          {x, y, DivideUp(box.x + box.width, reduction) - x,
           DivideUp(box.y + box.height, reduction) - y},
          view.mirror};
}

// The pixels that Resize will read.
PixelBox PixelsOf(const View& view) {
  const PixelBox& box = view.readable;
  const int left = std::max(static_cast<int>(std::floor(view.x)) - 1, box.x);
  const int top = std::max(static_cast<int>(std::floor(view.y)) - 1, box.y);
  const int right =
      std::min(static_cast<int>(std::ceil(view.x + view.width)) + 1, box.x + box.width);
  const int bottom =
      std::min(static_cast<int>(std::ceil(view.y + view.height)) + 1, box.y + box.height);
  return {left, top, right - left, bottom - top};
}

}  // namespace

ImageSize ImageLoader::ReadHeader(std::span<const std::uint8_t> file) {
  return decoder_.ReadHeader(file);
}

void ImageLoader::Load(const View& view, int size, std::span<std::uint8_t> pixels) {
  const int reduction = ChooseReduction(view, size, decoder_.max_reduction());
  const View reduced = Reduced(view, reduction);
  decoder_.Decode(reduction, PixelsOf(reduced), piece_);
  Resize(piece_, reduced, size, pixels);
}

}  // namespace trainer
