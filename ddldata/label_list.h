// SPDX-License-Identifier: Apache-2.0
//
// Text files that name the class of each image, as they come with ImageNet.  Pure.
//
// Errors are Error(EX_DATAERR) "PATH:LINE: ...".

#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/class_list.h"

namespace trainer {

// The class of each image.
class ImageLabels {
 public:
  // Each line is a class, that of the n-th image in the order of the names; or FILE and CLASS.
  // Between them is the first comma or tab of the line, where it has one, else its first blank;
  // what follows a second one is passed over.  Quotes around either are taken off, as tables have
  // them, and FILE may have directories in front.  Behind the first line ImageId,PredictionString,
  // that of Kaggle's LOC_val_solution.csv, a class ends at a blank: boxes follow.  FILE may be
  // without its ending.  A class that is a number n is the n-th of `classes_by_number`: the
  // development kit of ILSVRC2012 counts classes in an order of its own, so that its numbers mean
  // nothing without it.
  ImageLabels(std::string_view text, std::string path,
              const std::vector<ImageClass>& classes_by_number);

  // The classes of images of these names without their directories.  REQUIRES: sorted.  Throws if
  // their number is another than that of the lines, an image is not in the list, a line without
  // FILE begins with an image's name, as one with a semicolon does, or lines without FILE are for
  // names whose numbers are in another order (img1, img10, img2).
  std::vector<std::string> ClassesOf(const std::vector<std::string>& names,
                                     const std::string& source) const;

 private:
  void Take(std::string_view line, std::size_t line_number,
            const std::vector<ImageClass>& classes_by_number);

  void RejectOrderOfNumbers(const std::vector<std::string>& names) const;
  void RejectFilesAsClasses(const std::vector<std::string>& names) const;

  std::string path_;
  bool has_boxes_ = false;  // behind the classes
  std::vector<std::string> in_order_;
  std::map<std::string, std::string, std::less<>> by_file_;  // by names without ending
};

}  // namespace trainer
