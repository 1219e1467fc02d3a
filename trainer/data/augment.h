// SPDX-License-Identifier: Apache-2.0
//
// Which part of an image the network gets to see.  Pure.

#pragma once

#include <span>

#include "trainer/core/philox.h"
#include "trainer/data/image.h"

namespace trainer {

// A rectangle of the source image, in pixels with fractions, that is resized to the output, and the
// pixels that interpolation may read.
struct View {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
  PixelBox readable;
  bool mirror = false;  // flip left to right afterwards
};

// A random crop as TensorFlow's sample_distorted_bounding_box draws it with the settings of
// NVIDIA's trainer: area 5 % to 100 % of the image, aspect ratio (width / height) 0.75 to 1.33, and
// at least 10 % of some box of `boxes` (the whole image if there is none) within the crop; the
// whole image after 100 attempts without success.
PixelBox RandomCrop(ImageSize image, std::span<const BoundingBox> boxes, Random& random);

// Training: mirrored with probability 1/2 (the first number drawn), and a random crop.
View TrainingView(ImageSize image, std::span<const BoundingBox> boxes, Random& random);

// Evaluation: the square in the centre that `output` pixels show after the image's shorter side has
// been resized to output * 256 / 224.
View CentreView(ImageSize image, int output);

}  // namespace trainer
