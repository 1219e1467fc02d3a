// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/images/png.h"

#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <new>
#include <string>

#include "trainer/core/error.h"
#include "trainer/data/images/jpeg.h"

namespace trainer {
namespace {

constexpr std::uint32_t kMaxSide = 65500;  // a JPEG can have no more (libjpeg)

// libpng reports errors by a call that must not return, and is C: so by longjmp.  Guarded() is the
// only place with a setjmp; what runs in it holds no object with a destructor.
class PngReader {
 public:
  explicit PngReader(std::span<const std::uint8_t> data);
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  ImageSize ReadHeader();
  void ReadPixels(const ImageSize& size, std::vector<std::uint8_t>& pixels);

 private:
  static PngReader& Of(void* reader) { return *static_cast<PngReader*>(reader); }
  [[noreturn]] static void OnError(png_structp png, png_const_charp message);
  static void OnWarning(png_structp /*png*/, png_const_charp /*message*/) {}
  static void OnRead(png_structp png, png_bytep bytes, std::size_t size);

  template <typename Body>
  void Guarded(Body body) {
    if (setjmp(escape_) != 0) {
      throw Error(EX_DATAERR, std::string("cannot decode the PNG image: ") + message_.data());
    }
    body();
  }

  std::span<const std::uint8_t> rest_;  // not read yet
  std::jmp_buf escape_{};
  std::array<char, 256> message_{};
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

PngReader::PngReader(std::span<const std::uint8_t> data) : rest_(data) {
  Guarded([this] {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, OnError, OnWarning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
  });
  if (info_ == nullptr) {
    png_destroy_read_struct(&png_, nullptr, nullptr);
    throw std::bad_alloc();
  }
  png_set_read_fn(png_, this, OnRead);
  png_set_benign_errors(png_, 1);  // these are warnings
}

void PngReader::OnError(png_structp png, png_const_charp message) {
  PngReader& reader = Of(png_get_error_ptr(png));
  std::snprintf(reader.message_.data(), reader.message_.size(), "%s", message);
  std::longjmp(reader.escape_, 1);
}

void PngReader::OnRead(png_structp png, png_bytep bytes, std::size_t size) {
  PngReader& reader = Of(png_get_io_ptr(png));
  if (size > reader.rest_.size()) png_error(png, "read beyond end of data");
  std::copy_n(reader.rest_.begin(), size, bytes);
  reader.rest_ = reader.rest_.subspan(size);
}

ImageSize PngReader::ReadHeader() {
  Guarded([this] { png_read_info(png_, info_); });
  const std::uint32_t width = png_get_image_width(png_, info_);
  const std::uint32_t height = png_get_image_height(png_, info_);
  const bool has_too_many =
      std::uint64_t{width} * height > static_cast<std::uint64_t>(kMaxJpegPixels);
  if (has_too_many || width > kMaxSide || height > kMaxSide) {
    throw Error(EX_DATAERR, "the PNG image is too large: " + std::to_string(width) + " x " +
                                std::to_string(height) + " pixels, at most " +
                                std::to_string(kMaxJpegPixels) + ", and " +
                                std::to_string(kMaxSide) + " on a side, are decoded");
  }
  return {static_cast<int>(width), static_cast<int>(height)};
}

// The values that are stored, as TensorFlow and PIL take them: what the file says of gamma, colour
// spaces and transparency changes none.
void PngReader::ReadPixels(const ImageSize& size, std::vector<std::uint8_t>& pixels) {
  const auto row_bytes = static_cast<std::size_t>(size.width) * 3;
  pixels.resize(row_bytes * static_cast<std::size_t>(size.height));
  std::uint8_t* const first = pixels.data();
  Guarded([&] {
    png_set_expand(png_);    // palettes to RGB, gray of 1, 2 and 4 bits to 8
    png_set_strip_16(png_);  // the upper 8 bits
    png_set_strip_alpha(png_);
    png_set_gray_to_rgb(png_);
    const int passes = png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    if (png_get_rowbytes(png_, info_) != row_bytes) png_error(png_, "unknown kind of pixels");
    for (int pass = 0; pass < passes; ++pass) {
      for (int y = 0; y < size.height; ++y) {
        png_read_row(png_, first + row_bytes * static_cast<std::size_t>(y), nullptr);
      }
    }
  });
}

}  // namespace

DecodedPicture DecodePng(std::span<const std::uint8_t> data) {
  PngReader reader(data);
  DecodedPicture picture;
  picture.size = reader.ReadHeader();
  reader.ReadPixels(picture.size, picture.pixels);
  return picture;
}

}  // namespace trainer
