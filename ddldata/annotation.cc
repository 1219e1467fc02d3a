// SPDX-License-Identifier: Apache-2.0

#include "ddldata/annotation.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>

#include "ddldata/xml_scanner.h"
#include "support/number.h"
#include "trainer/data/files/text_lines.h"
#include "trainer/data/images/image_names.h"

namespace trainer {
namespace {

constexpr std::string_view kBoxPath = "annotation/object/bndbox";
constexpr std::array<std::string_view, 2> kSizePaths = {"annotation/size/width",
                                                        "annotation/size/height"};
constexpr std::array<std::string_view, 4> kCornerPaths = {
    "annotation/object/bndbox/xmin", "annotation/object/bndbox/ymin",
    "annotation/object/bndbox/xmax", "annotation/object/bndbox/ymax"};

// "<xmin>" of a path.
std::string TagOf(std::string_view path) { return "<" + std::string(BaseName(path)) + ">"; }

// The part that `pixels` are of `size`, as four digits behind the point say it.
float PartOf(int pixels, int size) {
  const double part = std::min(std::max(0.0, static_cast<double>(pixels) / size), 1.0);
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%.4f", part);
  return static_cast<float>(support::WholeNumber<double>(text.data()).value());
}

class AnnotationParser {
 public:
  AnnotationParser(std::string_view text, const std::string& path) : xml_(text, path) {}

  std::vector<BoundingBox> Parse();

 private:
  using Corners = std::array<std::optional<int>, kCornerPaths.size()>;

  void Begin(std::string_view name);
  void End();
  // Where the number goes that the open element is; null if it is none.
  std::optional<int>* Place();
  int NumberFrom(int min) const;
  BoundingBox Relative(const Corners& corners) const;

  XmlScanner xml_;
  std::string path_;  // names of the open elements with '/' between
  std::string text_;  // of the open number
  std::array<std::optional<int>, kSizePaths.size()> size_;
  Corners corners_;  // of the open box
  std::vector<Corners> boxes_;
};

std::optional<int>* AnnotationParser::Place() {
  for (std::size_t i = 0; i < size_.size(); ++i) {
    if (path_ == kSizePaths[i]) return &size_[i];
  }
  for (std::size_t i = 0; i < corners_.size(); ++i) {
    if (path_ == kCornerPaths[i]) return &corners_[i];
  }
  return nullptr;
}

void AnnotationParser::Begin(std::string_view name) {
  if (path_.empty() && name != "annotation") {
    xml_.Fail("the outermost element is " + Quoted(name) + ", not annotation");
  }
  if (Place() != nullptr) xml_.Fail("an element within " + TagOf(path_));
  if (!path_.empty()) path_ += '/';
  path_ += name;
  text_.clear();
  if (path_ == kBoxPath) corners_ = {};
  const std::optional<int>* place = Place();
  if (place != nullptr && *place) xml_.Fail(TagOf(path_) + " is there twice");
}

// Of `text_`.
int AnnotationParser::NumberFrom(int min) const {
  std::string text = text_;
  std::ranges::replace(text, '\n', ' ');
  const auto value = ParseDecimal(Trimmed(text));
  const bool is_allowed = value && *value >= min && *value <= kMaxAnnotationPixels;
  if (!is_allowed) {
    xml_.Fail(TagOf(path_) + " is " + Quoted(Trimmed(text)) + ", expected a number from " +
              std::to_string(min) + " to " + std::to_string(kMaxAnnotationPixels));
  }
  return static_cast<int>(*value);
}

void AnnotationParser::End() {
  if (std::optional<int>* place = Place()) {
    *place = NumberFrom(path_.starts_with(kBoxPath) ? -kMaxAnnotationPixels : 1);
  }
  if (path_ == kBoxPath) {
    for (std::size_t i = 0; i < corners_.size(); ++i) {
      if (!corners_[i]) xml_.Fail("the bounding box has no " + TagOf(kCornerPaths[i]));
    }
    boxes_.push_back(corners_);
  }
  path_.resize(path_.size() - std::min(path_.size(), BaseName(path_).size() + 1));
}

BoundingBox AnnotationParser::Relative(const Corners& corners) const {
  const auto [xmin, xmax] = std::minmax(*corners[0], *corners[2]);
  const auto [ymin, ymax] = std::minmax(*corners[1], *corners[3]);
  return {PartOf(xmin, *size_[0]), PartOf(ymin, *size_[1]), PartOf(xmax, *size_[0]),
          PartOf(ymax, *size_[1])};
}

std::vector<BoundingBox> AnnotationParser::Parse() {
  using Kind = XmlScanner::Kind;
  for (auto event = xml_.Next(); event.kind != Kind::kDone; event = xml_.Next()) {
    if (event.kind == Kind::kBegin) Begin(event.text);
    if (event.kind == Kind::kText && Place() != nullptr) text_ += event.text;
    if (event.kind == Kind::kEnd) End();
  }
  for (std::size_t i = 0; i < size_.size() && !boxes_.empty(); ++i) {
    if (!size_[i]) xml_.Fail("there are bounding boxes, but no " + TagOf(kSizePaths[i]));
  }
  std::vector<BoundingBox> boxes;
  for (const Corners& corners : boxes_) boxes.push_back(Relative(corners));
  return boxes;
}

}  // namespace

std::vector<BoundingBox> ParseAnnotation(std::string_view text, const std::string& path) {
  return AnnotationParser(text, path).Parse();
}

}  // namespace trainer
