// SPDX-License-Identifier: Apache-2.0
//
// The bounding boxes of a set's images, by the names of the images' files, and the list of them
// that TensorFlow's process_bounding_boxes.py writes (imagenet_2012_bounding_boxes.csv).  Pure.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
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

  // The size that those who drew the boxes saw; nothing where it is not known.
  void SetSize(std::string_view file, ImageSize size);
  std::optional<ImageSize> SizeOf(std::string_view file) const;

  // With boxes.
  std::int64_t images() const { return std::ssize(boxes_); }
  std::int64_t without_area() const { return without_area_; }
  // The first of the names, "" if there is none.
  std::string first_name() const { return boxes_.empty() ? "" : boxes_.begin()->first; }

 private:
  std::map<std::string, std::vector<BoundingBox>, std::less<>> boxes_;
  std::map<std::string, ImageSize, std::less<>> sizes_;
  std::int64_t without_area_ = 0;
};

// Each line is a box: FILE,xmin,ymin,xmax,ymax, as parts of the image's width and height, and
// nothing else.  An image may have several lines, anywhere.  A number may be beyond 0 or 1 by what
// rounding to four digits can do, 0.0001, and counts as 0 or 1 then.  Throws Error(EX_DATAERR)
// "PATH:LINE: ...".
BoxList ParseBoxList(std::string_view text, const std::string& path);

inline constexpr std::uint64_t kMaxAnnotationBytes = 1U << 20;  // they have less than a thousand
inline constexpr int kMaxAnnotationPixels = 1'000'000;

// Of one image: its boxes, and the size that it had for those who drew them.
struct Annotation {
  std::vector<BoundingBox> boxes;
  std::optional<ImageSize> size;
};

// The bounding boxes of one image, as ImageNet's annotation files have them: PASCAL VOC's XML. Read
// are annotation/size/{width,height} and annotation/object/bndbox/{xmin,ymin,xmax,ymax}, in
// pixels of the size that the image had for those who drew the boxes, and no more: neither
// <filename>, which is "%s" in some of ImageNet's files, nor the boxes of an object's parts.
//
// What comes out is what TensorFlow's process_bounding_boxes.py makes of it, to the last digit:
// digits behind the point are cut off; a box is in parts of width and height; its corners may be in
// any order; what is beyond the image is moved to its border; and each part is rounded to four
// digits.  A box may be without area then.
//
// Throws Error(EX_DATAERR) "PATH:LINE: ..." if the XML is not well-formed or has a document type
// (whose entities could make a small file a large one), the outermost element another one, a number
// of a box or the size missing, there twice or not a number, or the size not from 1, and a corner
// not from -kMaxAnnotationPixels, to kMaxAnnotationPixels.  An annotation without boxes needs no
// size. Pure.
Annotation ParseAnnotation(std::string_view text, const std::string& path);

// Whether width by height differs by more than rounding, as where one of the two is turned; images
// may have been made smaller since.  Pure.
bool HasOtherAspect(ImageSize annotation, ImageSize image);

// Reads the bounding boxes of images where people have them:
//   a text file           the list of TensorFlow's process_bounding_boxes.py (ParseBoxList)
//   a directory, a tar    annotations (ParseAnnotation), anywhere in it, as files NAME.xml of the
//                         images NAME; other files, and those that begin with a dot, are passed
//                         over, and several annotations of one name are of one image
// Errors are Error(EX_DATAERR) with the path, and in lists and annotations the line.
// `on_read` hears the number of annotations read now and then, and may throw.  The boxes of an
// image are in the order of the paths of its annotations.  A directory or tar without annotations
// is an error.
BoxList ReadBoxes(const std::string& path, const std::function<void(std::int64_t)>& on_read);

}  // namespace trainer
