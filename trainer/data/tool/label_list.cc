// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/tool/label_list.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>
#include <utility>

#include "support/counted.h"
#include "trainer/core/error.h"
#include "trainer/data/image_names.h"
#include "trainer/data/text_lines.h"

namespace trainer {
namespace {

std::optional<std::size_t> ParsePlace(std::string_view text) {
  std::size_t value = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  return result.ec == std::errc() && result.ptr == end ? std::optional(value) : std::nullopt;
}

}  // namespace

ImageLabels::ImageLabels(std::string_view text, std::string path,
                         const std::vector<ImageClass>& classes_by_number)
    : path_(std::move(path)) {
  ForEachLine(text, path_, [&](std::string_view line, std::size_t number) {
    if (number == 1 && line == "ImageId,PredictionString") {
      has_boxes_ = true;
      return;
    }
    Take(line, number, classes_by_number);
  });
}

void ImageLabels::Take(std::string_view line, std::size_t line_number,
                       const std::vector<ImageClass>& classes_by_number) {
  std::size_t separator = line.find_first_of(",\t");
  if (separator == std::string_view::npos) separator = line.find(' ');
  const bool has_file = separator != std::string_view::npos;
  if (line_number > 1 && has_file != in_order_.empty()) {
    throw BadLine(path_, line_number,
                  "each line must be CLASS, or each line FILE and CLASS: here they are mixed");
  }
  std::string_view name = line;
  if (has_file) {
    name = Trimmed(line.substr(separator + 1));
    name = Trimmed(name.substr(0, name.find(line[separator])));
    if (has_boxes_) name = name.substr(0, name.find_first_of(kBlanks));
  }
  if (name.empty()) throw BadLine(path_, line_number, "there is no class behind the file");
  if (const auto place = ParsePlace(name)) {
    if (classes_by_number.empty()) {
      throw BadLine(path_, line_number,
                    "the class is the number " + std::string(name) +
                        ": which one that is must be said by --class_numbers=FILE, whose n-th line "
                        "names class n (in ILSVRC2012's development kit meta.mat does, in another "
                        "order than that of the names)");
    }
    if (*place < 1 || *place > classes_by_number.size()) {
      throw BadLine(path_, line_number,
                    "the class " + std::string(name) + " is not 1 to " +
                        std::to_string(classes_by_number.size()) +
                        ", the lines of --class_numbers");
    }
    name = classes_by_number[*place - 1].name;
  }
  if (!has_file) {
    in_order_.emplace_back(name);
    return;
  }
  const std::string_view file = WithoutImageEnding(Trimmed(line.substr(0, separator)));
  if (!by_file_.emplace(file, name).second) {
    throw BadLine(path_, line_number, "the image " + std::string(file) + " is there twice");
  }
}

std::vector<std::string> ImageLabels::ClassesOf(const std::vector<std::string>& names,
                                                const std::string& source) const {
  const std::size_t lines = in_order_.size() + by_file_.size();
  if (lines != names.size()) {
    throw Error(EX_DATAERR, path_ + " names the classes of " +
                                support::Counted(static_cast<long long>(lines), "image") +
                                ", but " + source + " has " + std::to_string(names.size()) +
                                ": the two are not of one set");
  }
  if (by_file_.empty()) return in_order_;
  std::vector<std::string> classes;
  for (const std::string& name : names) {
    const auto found = by_file_.find(WithoutImageEnding(name));
    if (found == by_file_.end()) {
      throw Error(EX_DATAERR, path_ + " has no line for the image " + name + " of " + source);
    }
    classes.push_back(found->second);
  }
  return classes;
}

}  // namespace trainer
