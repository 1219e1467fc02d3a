// SPDX-License-Identifier: Apache-2.0
//
// Makes an ImageNet-like data set out of generated pictures.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/core/philox.h"
#include "trainer/data/images/image.h"

namespace trainer {

struct SynthOptions {
  std::string dir;  // made if it is not there
  int classes = 10;
  std::int64_t images = 2000;            // training
  std::int64_t validation_images = 500;  // none: no validation files
  int min_size = 80;                     // pixels; width and height are drawn from this range
  int max_size = 128;
  int shards = 8;  // files train-00000-of-00008 and so on
  int validation_shards = 2;
  std::uint64_t seed = 1;
  int threads = 1;
  bool force = false;  // replace the data files that are there
};

// Image i of the set has class i % classes and file label 1 + that.  The files' bytes depend on
// everything but `threads`, `force` and `dir`.  They appear under their names only when all of them
// are written, and the manifest (data_files.h) after them.  Throws Error(EX_USAGE) for options
// that make no sense or when the directory has data files and `force` is not set, Error(EX_OSERR)
// when a file cannot be written.
void MakeDataSet(const SynthOptions& options);

// Pictures for generated data sets: one large object on a busy background.  The class is the pair
// of the object's outline and the pattern on it; colours, place, size, tilt, background and noise
// are drawn without regard to the class, so that mean colours tell nothing.  All classes look like
// themselves in a mirror and at any scale.  Pure.

// Ten outlines, five patterns, four finenesses of the pattern.
inline constexpr int kMaxSyntheticClasses = 200;

struct Picture {
  ImageSize size;
  std::vector<std::uint8_t> pixels;  // height x width x 3, RGB
  BoundingBox box;                   // of the object
};

// REQUIRES: 0 <= class_index < kMaxSyntheticClasses.
Picture Render(int class_index, ImageSize size, Random& random);

// "ring, vertical stripes, 4 periods".
std::string DescribeSyntheticClass(int class_index);

}  // namespace trainer
