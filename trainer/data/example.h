// SPDX-License-Identifier: Apache-2.0
//
// What a record of an ImageNet-like data set holds: a tf.train.Example with the features of
// TensorFlow's build_imagenet_data.py.  Read here: image/encoded, image/class/label and
// image/object/bbox/{xmin,ymin,xmax,ymax}; the others are written for other readers.  Pure.

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trainer/data/images/image.h"

namespace trainer {

struct ImageExample {
  std::string encoded;     // the JPEG file
  std::int64_t label = 0;  // as in the file: ImageNet's are 1..1000
  std::vector<BoundingBox> boxes;
  // Written only.
  std::string synset;  // the name of the class (ClassNameIn); "": not written
  std::string label_text;
  std::string filename;
  ImageSize size;
};

// Throws Error(EX_DATAERR), without naming the record, if `data` is not an Example, a feature is
// missing or of another type, the lists of box corners differ in length, or a corner is outside
// [0, 1].
ImageExample ParseExample(std::span<const std::uint8_t> data);

// The name of the class, image/class/synset; "" where it is not there.  Throws as ParseExample of
// data that are not an Example.
std::string ClassNameIn(std::span<const std::uint8_t> data);

// The same bytes for the same example.
std::string SerializeExample(const ImageExample& example);

}  // namespace trainer
