// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/sample_loader.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "trainer/core/error.h"
#include "trainer/data/augment.h"
#include "trainer/data/example.h"
#include "trainer/data/resize.h"

namespace trainer {
namespace {

// The largest reduction by the decoder that leaves at least as many pixels as the output has.
// (Reductions that are no powers of two are slower than full decoding.)
int ChooseReduction(const View& view, int size) {
  int reduction = 8;
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

SampleLoader::SampleLoader(const DataSet& data, const SampleOptions& options)
    : data_(data), options_(options) {}

Sample SampleLoader::Load(std::int64_t record, Random random, std::span<std::uint8_t> pixels) {
  const std::span<const std::uint8_t> data = data_.Read(record, record_);
  try {
    return LoadUnnamed(data, random, pixels);
  } catch (const Error& error) {
    throw Error(error.exit_code(), data_.Describe(record, error.what()));
  }
}

Sample SampleLoader::LoadUnnamed(std::span<const std::uint8_t> data, Random& random,
                                 std::span<std::uint8_t> pixels) {
  const ImageExample example = ParseExample(data);
  Sample sample;
  sample.label = ClassOfLabel(example.label, options_.classes, options_.label_offset);
  const ImageSize size = decoder_.ReadHeader(
      {reinterpret_cast<const std::uint8_t*>(example.encoded.data()), example.encoded.size()});
  const View view = options_.augment ? TrainingView(size, example.boxes, random)
                                     : CentreView(size, options_.image_size);
  const int reduction = ChooseReduction(view, options_.image_size);
  const View reduced = Reduced(view, reduction);
  decoder_.Decode(reduction, PixelsOf(reduced), piece_);
  Resize(piece_, reduced, options_.image_size, pixels);
  sample.mirror = view.mirror;
  return sample;
}

std::int32_t ClassOfLabel(std::int64_t label, int classes, int label_offset) {
  const std::int64_t last = std::int64_t{label_offset} + classes - 1;
  if (label < label_offset || label > last) {
    throw Error(EX_DATAERR, "the label " + std::to_string(label) + " is out of range: allowed is " +
                                std::to_string(label_offset) + " to " + std::to_string(last));
  }
  return static_cast<std::int32_t>(label - label_offset);
}

}  // namespace trainer
