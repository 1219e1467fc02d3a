// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/files/foreign_data_formats.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "support/quoting.h"
#include "trainer/data/files/data_files.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxNames = 100;  // of one directory, and no more of its directories

std::vector<fs::directory_entry> SomeOf(const fs::path& dir) {
  std::vector<fs::directory_entry> entries;
  std::error_code error;
  for (fs::directory_iterator entry(dir, error);
       !error && entry != fs::directory_iterator() && entries.size() < kMaxNames;
       entry.increment(error)) {
    entries.push_back(*entry);
  }
  std::ranges::sort(entries);
  return entries;
}

bool IsDirectory(const fs::directory_entry& entry) {
  std::error_code ignored;
  return entry.is_directory(ignored);
}

bool IsDataFile(const std::string& name) {
  return name.starts_with(FilePrefix(Split::kTrain)) ||
         name.starts_with(FilePrefix(Split::kValidation));
}

// As TensorFlow Datasets names them: imagenet2012-train.tfrecord-00000-of-01024.
bool IsOfTensorFlowDatasets(const std::string& name) {
  return name.find(".tfrecord-") != std::string::npos;
}

// What `ddldata convert` reads.
bool IsImageOrTar(const std::string& name) {
  std::string ending = fs::path(name).extension().string();
  std::ranges::transform(ending, ending.begin(),
                         [](unsigned char letter) { return std::tolower(letter); });
  constexpr std::array<std::string_view, 4> kEndings = {".jpeg", ".jpg", ".png", ".tar"};
  return std::ranges::find(kEndings, ending) != kEndings.end();
}

// `depth`: 0 for what is in `dir` itself.
std::string PrintOf(const std::string& dir, const fs::directory_entry& entry, int depth) {
  const std::string name = entry.path().filename().string();
  const std::string path = entry.path().string();
  if (IsDataFile(name) && depth > 0) {
    // A link's target counts from where the link is.
    std::error_code ignored;
    const fs::path directory = fs::absolute(entry.path().parent_path(), ignored).lexically_normal();
    return "; those of both splits are to be in one directory, and " + path +
           " is in one of its own: ln -s " + support::QuoteCommand({directory.string()}) + "/* " +
           support::QuoteCommand({dir});
  }
  if (IsOfTensorFlowDatasets(name)) {
    return "; " + path +
           " is of TensorFlow Datasets, whose records have other features: make data files of the "
           "images with: ddldata convert";
  }
  if (IsImageOrTar(name)) {
    return "; data files are made of images and tars of them, such as " + path +
           ", with: ddldata convert";
  }
  return "";
}

}  // namespace

std::string PrintFindings(const std::string& dir) {
  std::vector<fs::path> directories = {dir};
  for (int depth = 0; depth <= 2; ++depth) {
    std::vector<fs::path> below;
    for (const fs::path& directory : directories) {
      for (const fs::directory_entry& entry : SomeOf(directory)) {
        if (IsDirectory(entry)) {
          if (below.size() < kMaxNames) below.push_back(entry.path());
        } else if (const std::string found = PrintOf(dir, entry, depth); !found.empty()) {
          return found;
        }
      }
    }
    directories = std::move(below);
  }
  return "";
}

}  // namespace trainer
