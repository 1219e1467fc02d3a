// SPDX-License-Identifier: Apache-2.0

#include "ddldata/stored_image.h"

#include <jpeglib.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>  // jpeglib.h needs FILE
#include <cstdlib>
#include <memory>

#include "trainer/core/error.h"

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
    return {EncodeJpeg(pixels, target, {.quality = options_.quality}), target, size};
  }
  if (decoder_.is_plain_jpeg()) return {std::string(file.begin(), file.end()), size, size};
  return {EncodeJpeg(piece_.pixels, size, {.quality = kQualityOfConverted}), size, size};
}

namespace {

constexpr int kWeightBits = 14;
constexpr std::int64_t kWeightOne = std::int64_t{1} << kWeightBits;
constexpr std::size_t kColors = 3;

// The old pixels of one axis that make a new one: from `first` on, with weights that sum to one.
struct WeightedRun {
  std::size_t first = 0;
  std::vector<std::int32_t> weights;
};

// Old pixel j has its centre at j + 1/2, the new pixel i at (i + 1/2) source / target; the triangle
// is source / target wide on each side.  All lengths times 2 target are whole numbers.
WeightedRun WeightsOf(std::int64_t i, std::int64_t source, std::int64_t target) {
  const std::int64_t centre = (2 * i + 1) * source;
  const std::int64_t reach = 2 * source;
  const auto height = [&](std::int64_t j) {
    return reach - std::abs((2 * j + 1) * target - centre);
  };
  std::int64_t first = std::max<std::int64_t>((centre - reach) / (2 * target), 0);
  while (height(first) <= 0) ++first;
  std::vector<std::int64_t> heights;
  std::int64_t sum = 0;
  for (std::int64_t j = first; j < source && height(j) > 0; ++j) {
    heights.push_back(height(j));
    sum += heights.back();
  }
  WeightedRun run{static_cast<std::size_t>(first), {}};
  std::int64_t rest = kWeightOne;
  for (const std::int64_t one : heights) {
    run.weights.push_back(static_cast<std::int32_t>(one * kWeightOne / sum));
    rest -= run.weights.back();
  }
  *std::ranges::max_element(run.weights) += static_cast<std::int32_t>(rest);
  return run;
}

std::vector<WeightedRun> AllWeights(int source, int target) {
  std::vector<WeightedRun> runs;
  for (int i = 0; i < target; ++i) runs.push_back(WeightsOf(i, source, target));
  return runs;
}

// The sum of run.weights[k] * values[k * stride], rounded.
std::uint8_t WeightedMean(const WeightedRun& run, const std::uint8_t* values, std::size_t stride) {
  std::int32_t sum = kWeightOne / 2;
  for (const std::int32_t weight : run.weights) {
    sum += weight * *values;
    values += stride;
  }
  return static_cast<std::uint8_t>(sum >> kWeightBits);
}

}  // namespace

ImageSize SizeWithShorterSide(ImageSize size, int shorter_side) {
  const std::int64_t shorter = std::min(size.width, size.height);
  const auto scaled = [&](std::int64_t side) {
    return static_cast<int>((side * shorter_side * 2 + shorter) / (2 * shorter));
  };
  return {scaled(size.width), scaled(size.height)};
}

std::vector<std::uint8_t> Shrink(std::span<const std::uint8_t> pixels, ImageSize size,
                                 ImageSize target) {
  DDL_CHECK(target.width > 0 && target.width <= size.width);
  DDL_CHECK(target.height > 0 && target.height <= size.height);
  const auto stride = static_cast<std::size_t>(size.width) * kColors;
  const auto target_stride = static_cast<std::size_t>(target.width) * kColors;
  DDL_CHECK(pixels.size() == stride * static_cast<std::size_t>(size.height));
  const std::vector<WeightedRun> columns = AllWeights(size.width, target.width);
  const std::vector<WeightedRun> rows = AllWeights(size.height, target.height);

  std::vector<std::uint8_t> narrow;  // height x target.width x 3
  narrow.reserve(target_stride * static_cast<std::size_t>(size.height));
  for (std::size_t row = 0; row < static_cast<std::size_t>(size.height); ++row) {
    for (const WeightedRun& column : columns) {
      const std::uint8_t* first = &pixels[row * stride + column.first * kColors];
      for (std::size_t color = 0; color < kColors; ++color) {
        narrow.push_back(WeightedMean(column, first + color, kColors));
      }
    }
  }
  std::vector<std::uint8_t> small;
  small.reserve(target_stride * static_cast<std::size_t>(target.height));
  for (const WeightedRun& row : rows) {
    for (std::size_t column = 0; column < target_stride; ++column) {
      small.push_back(
          WeightedMean(row, &narrow[row.first * target_stride + column], target_stride));
    }
  }
  return small;
}

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
