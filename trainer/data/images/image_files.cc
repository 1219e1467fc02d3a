// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/images/image_files.h"

#include <algorithm>
#include <system_error>

#include "trainer/data/images/image_names.h"

namespace trainer {
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
      throw CannotReadImages(path.string(),
                             error ? error : make_error_code(std::errc::no_such_file_or_directory));
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
