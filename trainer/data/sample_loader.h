// SPDX-License-Identifier: Apache-2.0
//
// One image from its record to the pixels the network sees: check, parse, choose, load.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/core/philox.h"
#include "trainer/data/files/data_set.h"
#include "trainer/data/images/augment.h"
#include "trainer/data/images/image_loader.h"

namespace trainer {

struct SampleOptions {
  int image_size = 224;
  int classes = 1000;
  int label_offset = 1;
  bool augment = true;  // false: CentreView
  Augmentation augmentation = Augmentation::kTensorFlow;
};

struct Sample {
  std::int32_t label = 0;  // [0, classes)
  bool mirror = false;
};

// Keeps its buffers from image to image.  Not thread-safe: one per thread.
class SampleLoader {
 public:
  SampleLoader(const DataSet& data, const SampleOptions& options);  // `data` must outlive it

  // Writes image_size x image_size x 3 bytes of RGB to `pixels`; `random` decides the augmentation.
  // Throws Error(EX_DATAERR) "PATH, record at offset N: ..." if the record cannot be used.
  Sample Load(std::int64_t record, Random random, std::span<std::uint8_t> pixels);
  // The same of a record whose bytes DataSet::Fetch gave.
  Sample LoadFetched(std::int64_t record, std::span<const std::uint8_t> bytes, Random random,
                     std::span<std::uint8_t> pixels);

 private:
  Sample LoadChecked(std::int64_t record, std::span<const std::uint8_t> data, Random& random,
                     std::span<std::uint8_t> pixels);
  Sample LoadUnnamed(std::span<const std::uint8_t> data, Random& random,
                     std::span<std::uint8_t> pixels);

  const DataSet& data_;
  SampleOptions options_;
  std::vector<std::uint8_t> record_;
  ImageLoader image_;
};

// The class of a file label.  Throws Error(EX_DATAERR) naming the label and the allowed range.
std::int32_t ClassOfLabel(std::int64_t label, int classes, int label_offset);

}  // namespace trainer
