// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/sample_loader.h"

#include <string>

#include "trainer/core/error.h"
#include "trainer/data/example.h"

namespace trainer {
SampleLoader::SampleLoader(const DataSet& data, const SampleOptions& options)
    : data_(data), options_(options) {}

Sample SampleLoader::Load(std::int64_t record, Random random, std::span<std::uint8_t> pixels) {
  return LoadChecked(record, data_.Read(record, record_), random, pixels);
}

Sample SampleLoader::LoadFetched(std::int64_t record, std::span<const std::uint8_t> bytes,
                                 Random random, std::span<std::uint8_t> pixels) {
  return LoadChecked(record, data_.Check(record, bytes), random, pixels);
}

Sample SampleLoader::LoadChecked(std::int64_t record, std::span<const std::uint8_t> data,
                                 Random& random, std::span<std::uint8_t> pixels) {
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
  const ImageSize size = image_.ReadHeader(
      {reinterpret_cast<const std::uint8_t*>(example.encoded.data()), example.encoded.size()});
  const View view = options_.augment
                        ? TrainingView(size, example.boxes, RulesOf(options_.augmentation), random)
                        : CentreView(size, options_.image_size);
  image_.Load(view, options_.image_size, pixels);
  sample.mirror = view.mirror;
  return sample;
}

constexpr char kFromZero[] =
    "; labels count from 1, as build_imagenet_data.py writes them, those of TF-slim and TFDS from "
    "0: make such a set anew of its images, by ddldata convert";

std::int32_t ClassOfLabel(std::int64_t label, int classes, int label_offset) {
  const std::int64_t last = std::int64_t{label_offset} + classes - 1;
  if (label < label_offset || label > last) {
    const bool counts_from_0 = label == 0 && label_offset == 1;
    throw Error(EX_DATAERR, "the label " + std::to_string(label) + " is out of range: allowed is " +
                                std::to_string(label_offset) + " to " + std::to_string(last) +
                                (counts_from_0 ? kFromZero : ""));
  }
  return static_cast<std::int32_t>(label - label_offset);
}

}  // namespace trainer
