// SPDX-License-Identifier: Apache-2.0
//
// Annotations of images as text.

#pragma once

#include <string>

namespace trainer {

// An object of an annotation; the corners are any text.
inline std::string ObjectElement(const std::string& xmin, const std::string& ymin,
                                 const std::string& xmax, const std::string& ymax) {
  return "<object><bndbox><xmin>" + xmin + "</xmin><ymin>" + ymin + "</ymin><xmax>" + xmax +
         "</xmax><ymax>" + ymax + "</ymax></bndbox></object>";
}

// Of an image of 200 x 100 pixels.
inline std::string AnnotationText(const std::string& objects) {
  return "<annotation><size><width>200</width><height>100</height></size>" + objects +
         "</annotation>";
}

}  // namespace trainer
