// SPDX-License-Identifier: Apache-2.0

#include "ddldata/bounding_box_files.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "ddldata/annotation.h"
#include "ddldata/image_sources.h"
#include "ddldata/tar.h"
#include "trainer/core/error.h"
#include "trainer/core/file.h"
#include "trainer/data/images/image_files.h"

namespace trainer {
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
    std::error_code ignored;  // a link to nothing is no directory; opening it complains
    if (entry->is_directory(ignored)) {
      if (IsHidden(at)) entry.disable_recursion_pending();
    } else if (IsAnnotation(at)) {
      files.push_back({entry->path().lexically_relative(directory).string(), {}});
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
    for (const BoundingBox& box : ParseAnnotation(text, name)) {
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
