// SPDX-License-Identifier: Apache-2.0
//
// Pictures for generated data sets: one large object on a busy background.  The class is the pair
// of the object's outline and the pattern on it; colours, place, size, tilt, background and noise
// are drawn without regard to the class, so that mean colours tell nothing.  All classes look like
// themselves in a mirror and at any scale.  Pure.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/core/philox.h"
#include "trainer/data/images/image.h"

namespace trainer {

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
