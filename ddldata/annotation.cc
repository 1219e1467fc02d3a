// SPDX-License-Identifier: Apache-2.0

#include "ddldata/annotation.h"

#include <expat.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <new>
#include <optional>

#include "support/number.h"
#include "trainer/data/files/text_lines.h"
#include "trainer/data/images/image_files.h"

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

// expat is C, so that no exception may leave a handler: the first error stops the parser.
class AnnotationParser {
 public:
  AnnotationParser();

  std::vector<BoundingBox> Parse(std::string_view text, const std::string& path);

 private:
  using Corners = std::array<std::optional<int>, kCornerPaths.size()>;
  struct ParserFree {
    void operator()(XML_Parser parser) const { XML_ParserFree(parser); }
  };

  void Begin(std::string_view name);
  void Text(std::string_view text);
  void End();
  void EndBox();
  void Fail(const std::string& what);
  std::string ExpatError() const;
  // Where the number goes that the open element is; null if it is none.
  std::optional<int>* Place();
  std::optional<int> NumberFrom(int min);
  BoundingBox Relative(const Corners& corners) const;

  std::unique_ptr<XML_ParserStruct, ParserFree> xml_{XML_ParserCreate(nullptr)};
  std::string error_;       // empty: none
  std::uint64_t line_ = 0;  // of the error
  std::string path_;        // names of the open elements with '/' between
  std::string text_;        // of the open number
  std::array<std::optional<int>, kSizePaths.size()> size_;
  Corners corners_;  // of the open box
  std::vector<Corners> boxes_;
};

AnnotationParser::AnnotationParser() {
  if (!xml_) throw std::bad_alloc();
  XML_SetUserData(xml_.get(), this);
  XML_SetElementHandler(
      xml_.get(),
      [](void* self, const char* name, const char** /*attributes*/) {
        static_cast<AnnotationParser*>(self)->Begin(name);
      },
      [](void* self, const char* /*name*/) { static_cast<AnnotationParser*>(self)->End(); });
  XML_SetCharacterDataHandler(xml_.get(), [](void* self, const char* text, int size) {
    static_cast<AnnotationParser*>(self)->Text({text, static_cast<std::size_t>(size)});
  });
  // Its entities could make a small file a large one.
  XML_SetStartDoctypeDeclHandler(
      xml_.get(), [](void* self, const char*, const char*, const char*, int) {
        static_cast<AnnotationParser*>(self)->Fail("a document type, which is not read");
      });
}

void AnnotationParser::Fail(const std::string& what) {
  if (!error_.empty()) return;
  error_ = what;
#if XML_MAJOR_VERSION > 2 || XML_MINOR_VERSION >= 9  // where the other one is deprecated
  line_ = XML_GetCurrentLineNumber64(xml_.get());
#else
  line_ = XML_GetCurrentLineNumber(xml_.get());
#endif
  XML_StopParser(xml_.get(), XML_FALSE);
}

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
    return Fail("the outermost element is " + Quoted(name) + ", not annotation");
  }
  if (Place() != nullptr) return Fail("an element within " + TagOf(path_));
  if (!path_.empty()) path_ += '/';
  path_ += name;
  text_.clear();
  if (path_ == kBoxPath) corners_ = {};
  const std::optional<int>* place = Place();
  if (place != nullptr && *place) Fail(TagOf(path_) + " is there twice");
}

void AnnotationParser::Text(std::string_view text) {
  if (Place() != nullptr) text_ += text;
}

// Of `text_`.
std::optional<int> AnnotationParser::NumberFrom(int min) {
  std::string text = text_;
  std::ranges::replace(text, '\n', ' ');
  const auto value = ParseDecimal(Trimmed(text));
  if (value && *value >= min && *value <= kMaxAnnotationPixels) return static_cast<int>(*value);
  Fail(TagOf(path_) + " is " + Quoted(Trimmed(text)) + ", expected a number from " +
       std::to_string(min) + " to " + std::to_string(kMaxAnnotationPixels));
  return {};
}

void AnnotationParser::EndBox() {
  for (std::size_t i = 0; i < corners_.size(); ++i) {
    if (!corners_[i]) return Fail("the bounding box has no " + TagOf(kCornerPaths[i]));
  }
  boxes_.push_back(corners_);
}

void AnnotationParser::End() {
  if (!error_.empty()) return;  // the end of <element/>, which expat still reports
  if (std::optional<int>* place = Place()) {
    *place = NumberFrom(path_.starts_with(kBoxPath) ? -kMaxAnnotationPixels : 1);
  }
  if (path_ == kBoxPath) EndBox();
  path_.resize(path_.size() - std::min(path_.size(), BaseName(path_).size() + 1));
}

BoundingBox AnnotationParser::Relative(const Corners& corners) const {
  const auto [xmin, xmax] = std::minmax(*corners[0], *corners[2]);
  const auto [ymin, ymax] = std::minmax(*corners[1], *corners[3]);
  return {PartOf(xmin, *size_[0]), PartOf(ymin, *size_[1]), PartOf(xmax, *size_[0]),
          PartOf(ymax, *size_[1])};
}

std::string AnnotationParser::ExpatError() const {
  const XML_Error error = XML_GetErrorCode(xml_.get());
  if (error == XML_ERROR_NO_ELEMENTS && !path_.empty()) {
    return "the file ends within the element " + Quoted(BaseName(path_));
  }
  return std::string("no well-formed XML: ") + XML_ErrorString(error);
}

std::vector<BoundingBox> AnnotationParser::Parse(std::string_view text, const std::string& path) {
  const XML_Status status =
      XML_Parse(xml_.get(), text.data(), static_cast<int>(text.size()), XML_TRUE);
  if (status != XML_STATUS_OK) Fail(ExpatError());
  for (std::size_t i = 0; i < size_.size() && !boxes_.empty(); ++i) {
    if (!size_[i]) Fail("there are bounding boxes, but no " + TagOf(kSizePaths[i]));
  }
  if (!error_.empty()) throw BadLine(path, line_, error_);
  std::vector<BoundingBox> boxes;
  for (const Corners& corners : boxes_) boxes.push_back(Relative(corners));
  return boxes;
}

}  // namespace

std::vector<BoundingBox> ParseAnnotation(std::string_view text, const std::string& path) {
  return AnnotationParser().Parse(text, path);
}

}  // namespace trainer
