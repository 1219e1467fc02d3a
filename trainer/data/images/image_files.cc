// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/images/image_files.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <system_error>

namespace trainer {
namespace {

constexpr std::array<std::string_view, 21> kImageEndings = {
    ".jpeg", ".jpg", ".jpe", ".jfif", ".png",  ".gif",  ".bmp",  ".webp", ".tif", ".tiff", ".ppm",
    ".pgm",  ".pbm", ".pnm", ".tga",  ".heic", ".heif", ".avif", ".jp2",  ".j2k", ".jxl"};

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower;
}

}  // namespace

std::string_view BaseName(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

bool HasEnding(std::string_view name, std::string_view ending) {
  return name.size() >= ending.size() &&
         LowerCase(name.substr(name.size() - ending.size())) == ending;
}

bool HasImageEnding(std::string_view name) { return WithoutImageEnding(name).size() < name.size(); }

std::string_view WithoutImageEnding(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return name;
  const std::string ending = LowerCase(name.substr(dot));
  return std::ranges::find(kImageEndings, ending) == kImageEndings.end() ? name
                                                                         : name.substr(0, dot);
}

bool IsHidden(std::string_view path) {
  constexpr std::array<std::string_view, 7> kOfStorage = {
      "lost+found", "@eaDir", "#recycle", "__MACOSX", "#snapshot", "@Recycle", "$RECYCLE.BIN"};
  for (std::size_t start = 0; start < path.size();) {
    const std::size_t end = std::min(path.find('/', start), path.size());
    const std::string_view name = path.substr(start, end - start);
    if (name.starts_with('.')) return true;
    if (std::ranges::find(kOfStorage, name) != kOfStorage.end()) return true;
    start = end + 1;
  }
  return false;
}

namespace {

namespace fs = std::filesystem;

Error CannotReadImages(const std::string& path, const std::error_code& error) {
  return {EX_DATAERR, "cannot read " + path + ": " + error.message()};
}

void AddImagesBelow(const fs::path& directory, int depth, std::vector<fs::path>& found) {
  if (depth > kMaxDirectoryDepth) throw TooManyDirectories(directory.string());
  for (const fs::directory_entry& entry : EntriesOf(directory)) {
    const std::string name = entry.path().filename().string();
    if (IsHidden(name)) continue;
    std::error_code ignored;
    if (entry.is_directory(ignored)) {
      AddImagesBelow(entry.path(), depth + 1, found);
    } else if (HasImageEnding(name)) {
      found.push_back(entry.path());
    }
  }
}

}  // namespace

std::string AdviceOfMissing(std::string_view path) {
  if (path.find("://") != std::string_view::npos || path.starts_with("pipe:")) {
    return "; what is elsewhere is not read: download it, and give its path";
  }
  const bool is_pattern = path.find_first_of("{}*?") != std::string_view::npos;
  if (is_pattern) return "; write it without quotes, so that the shell makes the names";
  const std::string first(path.substr(0, path.find_first_of(", ")));
  std::error_code ignored;
  const bool is_list = first.size() < path.size() && !first.empty() && fs::exists(first, ignored);
  return is_list ? "; write several as words of their own, with a space between them" : "";
}

Error TooManyDirectories(const std::string& path) {
  return {EX_DATAERR, path + ": more than " + std::to_string(kMaxDirectoryDepth) +
                          " directories in each other; is one a link to a directory above?"};
}

std::vector<fs::directory_entry> EntriesOf(const fs::path& directory) {
  std::error_code error;
  fs::directory_iterator entry(directory, error);
  std::vector<fs::directory_entry> entries;
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    entries.push_back(*entry);
  }
  if (error) throw CannotReadImages(directory.string(), error);
  std::ranges::sort(entries);
  return entries;
}

std::vector<fs::path> FindImageFiles(std::span<const fs::path> given) {
  std::vector<fs::path> found;
  for (const fs::path& path : given) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (!fs::exists(status)) {
      const Error why = CannotReadImages(
          path.string(), error ? error : make_error_code(std::errc::no_such_file_or_directory));
      throw Error(why.exit_code(), why.what() + AdviceOfMissing(path.string()));
    }
    if (!fs::is_directory(status)) {
      found.push_back(path);
      continue;
    }
    const std::size_t before = found.size();
    AddImagesBelow(path, 1, found);
    if (found.size() == before) {
      throw Error(EX_DATAERR,
                  path.string() + " has no images: no file whose name ends as .JPEG, .jpg or .png");
    }
  }
  return found;
}

}  // namespace trainer
