// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/tool/png.h"

#include <png.h>

#include <memory>
#include <string>

#include "trainer/core/error.h"
#include "trainer/data/jpeg.h"

namespace trainer {
namespace {

constexpr std::uint32_t kMaxSide = 65500;  // a JPEG can have no more (libjpeg)

[[noreturn]] void RefusePng(const png_image& image) {
  throw Error(EX_DATAERR, std::string("cannot decode the PNG image: ") + image.message);
}

}  // namespace

DecodedPicture DecodePng(std::span<const std::uint8_t> data) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  const std::unique_ptr<png_image, decltype(&png_image_free)> cleanup(&image, png_image_free);
  if (png_image_begin_read_from_memory(&image, data.data(), data.size()) == 0) RefusePng(image);
  const bool has_too_many =
      std::uint64_t{image.width} * image.height > static_cast<std::uint64_t>(kMaxJpegPixels);
  if (has_too_many || image.width > kMaxSide || image.height > kMaxSide) {
    throw Error(EX_DATAERR, "the PNG image is too large: " + std::to_string(image.width) + " x " +
                                std::to_string(image.height) + " pixels, at most " +
                                std::to_string(kMaxJpegPixels) + ", and " +
                                std::to_string(kMaxSide) + " on a side, are decoded");
  }
  image.format = PNG_FORMAT_RGB;
  image.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;  // 16 bits are not linear light, as TensorFlow has it
  DecodedPicture picture;
  picture.size = {static_cast<int>(image.width), static_cast<int>(image.height)};
  picture.pixels.resize(PNG_IMAGE_SIZE(image));
  const png_color white{255, 255, 255};
  if (png_image_finish_read(&image, &white, picture.pixels.data(), 0, nullptr) == 0) {
    RefusePng(image);
  }
  return picture;
}

}  // namespace trainer
