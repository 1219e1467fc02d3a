// SPDX-License-Identifier: Apache-2.0
//
// The bounding boxes of a set's images, by the names of the images' files, and the list of them
// that TensorFlow's process_bounding_boxes.py writes (imagenet_2012_bounding_boxes.csv).  Pure.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/images/image.h"

namespace trainer {

inline constexpr std::uint64_t kMaxBoxListBytes = 1U << 30;
inline constexpr std::size_t kMaxBoxesOfImage = 10'000;  // an image has some dozen

// Of names neither directories in front nor the ending as an image count.
class BoxList {
 public:
  // Behind those that the image has.  A box without area is not kept, but counted.  False if the
  // image has kMaxBoxesOfImage.  REQUIRES: 0 <= xmin <= xmax <= 1, and the same of ymin and ymax.
  [[nodiscard]] bool Add(std::string_view file, const BoundingBox& box);

  // In the order in which they were added; none if the image has none.  Valid until the next Add.
  std::span<const BoundingBox> BoxesOf(std::string_view file) const;

  // With boxes.
  std::int64_t images() const { return std::ssize(boxes_); }
  std::int64_t without_area() const { return without_area_; }
  // The first of the names, "" if there is none.
  std::string first_name() const { return boxes_.empty() ? "" : boxes_.begin()->first; }

 private:
  std::map<std::string, std::vector<BoundingBox>, std::less<>> boxes_;
  std::int64_t without_area_ = 0;
};

// Each line is a box: FILE,xmin,ymin,xmax,ymax, as parts of the image's width and height, and
// nothing else.  An image may have several lines, anywhere.  A number may be beyond 0 or 1 by what
// rounding to four digits can do, 0.0001, and counts as 0 or 1 then.  Throws Error(EX_DATAERR)
// "PATH:LINE: ...".
BoxList ParseBoxList(std::string_view text, const std::string& path);

}  // namespace trainer
