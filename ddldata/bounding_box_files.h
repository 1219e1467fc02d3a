// SPDX-License-Identifier: Apache-2.0
//
// Where the bounding boxes of images lie, as people have them:
//   a text file           the list of TensorFlow's process_bounding_boxes.py (bounding_box_list.h)
//   a directory, or a tar    annotations (annotation.h), anywhere in it, as files NAME.xml of the
//                         images NAME; other files, and those that begin with a dot, are passed
//                         over, and several annotations of one name are of one image
// Errors are Error(EX_DATAERR) with the path, and in lists and annotations the line.

#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "ddldata/bounding_box_list.h"

namespace trainer {

// `on_read` hears the number of annotations read now and then, and may throw.  The boxes of an
// image are in the order of the paths of its annotations.  A directory or tar without annotations
// is an error.
BoxList ReadBoxes(const std::string& path, const std::function<void(std::int64_t)>& on_read);

}  // namespace trainer
