// SPDX-License-Identifier: Apache-2.0
//
// The few values that the steps from record to pixels pass on.

#pragma once

#include <cstdint>
#include <vector>

namespace trainer {

// In pixels.
struct ImageSize {
  int width = 0;
  int height = 0;
  bool operator==(const ImageSize&) const = default;
};

// A rectangle of whole pixels.
struct PixelBox {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
  bool operator==(const PixelBox&) const = default;
};

// Where an object is, as parts of the image's width and height: 0 <= xmin, xmax, ymin, ymax <= 1.
struct BoundingBox {
  float xmin = 0;
  float ymin = 0;
  float xmax = 1;
  float ymax = 1;
  bool operator==(const BoundingBox&) const = default;
};

// A piece of an image: the pixels of `box`, rows from the top, RGB.
struct ImagePiece {
  PixelBox box;
  std::vector<std::uint8_t> pixels;  // box.height x box.width x 3
};

}  // namespace trainer
