// SPDX-License-Identifier: Apache-2.0
//
// The bounding boxes of one image, as ImageNet's annotation files have them: PASCAL VOC's XML.
// Pure.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/images/image.h"

namespace trainer {

inline constexpr std::uint64_t kMaxAnnotationBytes = 1U << 20;  // they have less than a thousand
inline constexpr int kMaxAnnotationPixels = 1'000'000;

// Read are annotation/size/{width,height} and annotation/object/bndbox/{xmin,ymin,xmax,ymax}, in
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
// of a box or the size missing, there twice or no number, or the size not from 1, and a corner not
// from -kMaxAnnotationPixels, to kMaxAnnotationPixels.  An annotation without boxes needs no size.
std::vector<BoundingBox> ParseAnnotation(std::string_view text, const std::string& path);

}  // namespace trainer
