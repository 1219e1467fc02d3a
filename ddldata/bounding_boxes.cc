// SPDX-License-Identifier: Apache-2.0

#include "ddldata/bounding_boxes.h"

#include <expat.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "ddldata/image_sources.h"
#include "ddldata/tar.h"
#include "support/number.h"
#include "trainer/core/error.h"
#include "trainer/core/file.h"
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

void BoxList::SetSize(std::string_view file, ImageSize size) {
  sizes_.insert_or_assign(std::string(WithoutImageEnding(BaseName(file))), size);
}

std::optional<ImageSize> BoxList::SizeOf(std::string_view file) const {
  const auto found = sizes_.find(WithoutImageEnding(BaseName(file)));
  return found == sizes_.end() ? std::nullopt : std::optional(found->second);
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

  Annotation Parse(std::string_view text, const std::string& path);

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

Annotation AnnotationParser::Parse(std::string_view text, const std::string& path) {
  const XML_Status status =
      XML_Parse(xml_.get(), text.data(), static_cast<int>(text.size()), XML_TRUE);
  if (status != XML_STATUS_OK) Fail(ExpatError());
  for (std::size_t i = 0; i < size_.size() && !boxes_.empty(); ++i) {
    if (!size_[i]) Fail("there are bounding boxes, but no " + TagOf(kSizePaths[i]));
  }
  if (!error_.empty()) throw BadLine(path, line_, error_);
  Annotation annotation;
  for (const Corners& corners : boxes_) annotation.boxes.push_back(Relative(corners));
  if (size_[0] && size_[1]) annotation.size = {*size_[0], *size_[1]};
  return annotation;
}

}  // namespace

Annotation ParseAnnotation(std::string_view text, const std::string& path) {
  return AnnotationParser().Parse(text, path);
}

bool HasOtherAspect(ImageSize annotation, ImageSize image) {
  const auto [wide, high] = std::pair<double, double>(annotation.width, annotation.height);
  const double other = wide * image.height / (high * image.width);
  const int shortest = std::min({annotation.width, annotation.height, image.width, image.height});
  const double rounding = 1 + 0.02 + 1.0 / shortest;
  return other > rounding || other * rounding < 1;
}

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kAnnotationEnding = ".xml";
constexpr std::int64_t kReadInterval = 1024;

// A file of a directory, or a member of a tar.
struct AnnotationFile {
  std::string path;  // within the directory or tar
  ByteRange range;   // of the tar
};

bool IsAnnotation(std::string_view path) {
  return HasEnding(path, kAnnotationEnding) && !IsHidden(path);
}

// Whether the file begins as a text does; tars, and what is compressed, do not.
bool IsText(const support::Descriptor& file, const std::string& path) {
  std::array<std::uint8_t, kTarBlockBytes> block{};
  const std::size_t bytes = ReadAt(file, path, 0, block);
  return std::all_of(
      block.begin(), block.begin() + static_cast<std::ptrdiff_t>(bytes),
      [](std::uint8_t c) { return c >= ' ' || c == '\t' || c == '\r' || c == '\n'; });
}

std::vector<AnnotationFile> AnnotationsBelow(const std::string& directory) {
  std::error_code error;
  fs::recursive_directory_iterator entry(directory, fs::directory_options::follow_directory_symlink,
                                         error);
  std::vector<AnnotationFile> files;
  std::string at = directory;
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (entry.depth() > kMaxDirectoryDepth)
      throw TooManyDirectories(entry->path().parent_path().string());
    at = entry->path().string();
    const std::string path = entry->path().lexically_relative(directory).string();
    std::error_code ignored;  // a link to nothing is no directory; opening it complains
    if (entry->is_directory(ignored)) {
      if (IsHidden(path)) entry.disable_recursion_pending();
    } else if (IsAnnotation(path)) {
      files.push_back({path, {}});
    }
  }
  if (error) throw Error(EX_DATAERR, "cannot read " + at + ": " + error.message());
  return files;
}

std::vector<AnnotationFile> AnnotationsIn(const support::Descriptor& file,
                                          const std::string& path) {
  std::vector<AnnotationFile> files;
  TarReader tar(file, path, {0, FileSize(file, path)});
  while (const auto member = tar.Next()) {
    if (!IsAnnotation(member->name)) continue;
    if (member->kind == TarKind::kFile) {
      files.push_back({member->name, {member->offset, member->size}});
    } else if (member->kind == TarKind::kLink) {
      throw Error(EX_DATAERR, path + ", " + member->name +
                                  ": a link to another file: pack the files themselves with tar "
                                  "--dereference --hard-dereference");
    }
  }
  return files;
}

std::string ReadMember(const support::Descriptor& file, const std::string& path,
                       const AnnotationFile& annotation) {
  if (annotation.range.size > kMaxAnnotationBytes) {
    throw Error(EX_DATAERR, path + ", " + annotation.path + " has " +
                                std::to_string(annotation.range.size) + " bytes, at most " +
                                std::to_string(kMaxAnnotationBytes) + " are read");
  }
  std::string text(annotation.range.size, '\0');
  const std::span bytes(reinterpret_cast<std::uint8_t*>(text.data()), text.size());
  if (ReadAt(file, path, annotation.range.offset, bytes) < bytes.size()) {
    throw Error(EX_DATAERR,
                path + ", " + annotation.path + ": the file changed while it was in use");
  }
  return text;
}

}  // namespace

BoxList ReadBoxes(const std::string& path, const std::function<void(std::int64_t)>& on_read) {
  std::error_code ignored;  // of a path to nothing: opening it complains
  const bool is_directory = fs::is_directory(path, ignored);
  support::Descriptor file;
  if (!is_directory) {
    file = OpenForReading(path);
    if (IsText(file, path)) return ParseBoxList(ReadWholeFile(path, kMaxBoxListBytes), path);
  }
  std::vector<AnnotationFile> annotations =
      is_directory ? AnnotationsBelow(path) : AnnotationsIn(file, path);
  if (annotations.empty()) {
    throw Error(EX_DATAERR, path + " has no annotations: no file whose name ends as .xml");
  }
  std::ranges::sort(annotations, {}, &AnnotationFile::path);
  BoxList boxes;
  std::int64_t read = 0;
  for (const AnnotationFile& annotation : annotations) {
    const std::string name = path + (is_directory ? "/" : ", ") + annotation.path;
    const std::string text = is_directory ? ReadWholeFile(name, kMaxAnnotationBytes)
                                          : ReadMember(file, path, annotation);
    std::string_view image = annotation.path;
    image.remove_suffix(kAnnotationEnding.size());
    const Annotation parsed = ParseAnnotation(text, name);
    if (parsed.size && !parsed.boxes.empty()) boxes.SetSize(image, *parsed.size);
    for (const BoundingBox& box : parsed.boxes) {
      if (boxes.Add(image, box)) continue;
      throw Error(EX_DATAERR, name + ": the image has more than " +
                                  std::to_string(kMaxBoxesOfImage) + " bounding boxes");
    }
    if (++read % kReadInterval == 0) on_read(read);
  }
  on_read(read);
  return boxes;
}

}  // namespace trainer
