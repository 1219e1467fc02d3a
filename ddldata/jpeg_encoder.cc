// SPDX-License-Identifier: Apache-2.0

#include "ddldata/jpeg_encoder.h"

#include <jpeglib.h>

#include <cstddef>
#include <cstdio>  // jpeglib.h needs FILE
#include <cstdlib>
#include <memory>

#include "trainer/core/error.h"

namespace trainer {
namespace {

// The only errors of encoding are our own mistakes and a lack of memory.  This throws through
// libjpeg's frames, which is good enough for a state that is never used again.
[[noreturn]] void OnError(j_common_ptr common) {
  char message[JMSG_LENGTH_MAX];
  common->err->format_message(common, message);
  throw Error(EX_SOFTWARE, std::string("cannot encode a JPEG image: ") + message);
}

J_COLOR_SPACE InputSpace(JpegColors colors) {
  switch (colors) {
    case JpegColors::kGray:
      return JCS_GRAYSCALE;
    case JpegColors::kCmyk:
      return JCS_CMYK;
    case JpegColors::kYcc:
      return JCS_RGB;
  }
  return JCS_UNKNOWN;
}

int Channels(JpegColors colors) {
  return colors == JpegColors::kGray ? 1 : colors == JpegColors::kCmyk ? 4 : 3;
}

}  // namespace

std::string EncodeJpeg(std::span<const std::uint8_t> pixels, ImageSize size,
                       const JpegEncoding& encoding) {
  const int channels = Channels(encoding.colors);
  const std::size_t stride =
      static_cast<std::size_t>(size.width) * static_cast<std::size_t>(channels);
  DDL_CHECK(pixels.size() == stride * static_cast<std::size_t>(size.height));
  jpeg_error_mgr errors{};
  jpeg_compress_struct jpeg{};
  jpeg.err = jpeg_std_error(&errors);
  errors.error_exit = OnError;
  jpeg_create_compress(&jpeg);
  const std::unique_ptr<jpeg_compress_struct, decltype(&jpeg_destroy_compress)> cleanup(
      &jpeg, jpeg_destroy_compress);
  unsigned char* bytes = nullptr;
  unsigned long length = 0;
  jpeg_mem_dest(&jpeg, &bytes, &length);
  jpeg.image_width = static_cast<JDIMENSION>(size.width);
  jpeg.image_height = static_cast<JDIMENSION>(size.height);
  jpeg.input_components = channels;
  jpeg.in_color_space = InputSpace(encoding.colors);
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, encoding.quality, TRUE);
  if (encoding.progressive) jpeg_simple_progression(&jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  for (int y = 0; y < size.height; ++y) {
    auto* row = const_cast<JSAMPROW>(pixels.data() + static_cast<std::size_t>(y) * stride);
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  const std::unique_ptr<unsigned char, decltype(&std::free)> owner(bytes, std::free);
  return {reinterpret_cast<const char*>(bytes), length};
}

}  // namespace trainer
