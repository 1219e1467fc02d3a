// SPDX-License-Identifier: Apache-2.0

#include "ddldata/bounding_box_list.h"

#include <algorithm>
#include <array>

#include "trainer/data/files/text_lines.h"
#include "trainer/data/images/image_files.h"

namespace trainer {
namespace {

constexpr std::array<const char*, 4> kColumns = {"xmin", "ymin", "xmax", "ymax"};

float ParseCorner(std::string_view text, const char* name, const std::string& path,
                  std::size_t line) {
  const auto value = ParseDecimal(text);
  if (!value) {
    throw BadLine(path, line, std::string("the ") + name + " " + Quoted(text) + " is not numeric");
  }
  constexpr double kMin = -0.0001;
  constexpr double kMax = 1.0001;
  if (*value < kMin || *value > kMax) {
    throw BadLine(path, line,
                  std::string("the ") + name + " " + Quoted(text) +
                      " is not from 0 to 1: a bounding box is in parts of the image's width and "
                      "height, as TensorFlow's process_bounding_boxes.py writes it");
  }
  return static_cast<float>(std::min(std::max(0.0, *value), 1.0));
}

void RequireOrder(float min, float max, char axis, const std::string& path, std::size_t line) {
  if (min <= max) return;
  throw BadLine(path, line,
                std::string("the ") + axis + "min is greater than the " + axis +
                    "max: the columns are FILE,xmin,ymin,xmax,ymax");
}

}  // namespace

bool BoxList::Add(std::string_view file, const BoundingBox& box) {
  if (box.xmin >= box.xmax || box.ymin >= box.ymax) {
    ++without_area_;
    return true;
  }
  std::vector<BoundingBox>& boxes = boxes_[std::string(WithoutImageEnding(BaseName(file)))];
  if (boxes.size() == kMaxBoxesOfImage) return false;
  boxes.push_back(box);
  return true;
}

std::span<const BoundingBox> BoxList::BoxesOf(std::string_view file) const {
  const auto found = boxes_.find(WithoutImageEnding(BaseName(file)));
  if (found == boxes_.end()) return {};
  return found->second;
}

BoxList ParseBoxList(std::string_view text, const std::string& path) {
  BoxList boxes;
  ForEachLine(text, path, [&](std::string_view line, std::size_t number) {
    std::vector<std::string_view> fields;
    for (std::size_t begin = 0; begin <= line.size() && fields.size() <= kColumns.size() + 1;) {
      const std::size_t end = std::min(line.find(',', begin), line.size());
      fields.push_back(Trimmed(line.substr(begin, end - begin)));
      begin = end + 1;
    }
    if (fields.size() != kColumns.size() + 1 || fields.front().empty()) {
      throw BadLine(path, number, "expected FILE,xmin,ymin,xmax,ymax, not " + Quoted(line));
    }
    std::array<float, kColumns.size()> corners{};
    for (std::size_t i = 0; i < corners.size(); ++i) {
      corners[i] = ParseCorner(fields[i + 1], kColumns[i], path, number);
    }
    const BoundingBox box = {corners[0], corners[1], corners[2], corners[3]};
    RequireOrder(box.xmin, box.xmax, 'x', path, number);
    RequireOrder(box.ymin, box.ymax, 'y', path, number);
    if (!boxes.Add(fields.front(), box)) {
      throw BadLine(
          path, number,
          "the image has more than " + std::to_string(kMaxBoxesOfImage) + " bounding boxes");
    }
  });
  return boxes;
}

}  // namespace trainer
