// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/log_analysis/files.h"

#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "bench/run_log/log_lines.h"
#include "support/file.h"
#include "trainer/core/error.h"

namespace bench {

namespace fs = std::filesystem;

std::vector<fs::path> FilesBelow(const fs::path& directory,
                                 const std::function<bool(const fs::path&)>& is_wanted,
                                 Diagnostics& diagnostics) {
  std::vector<fs::path> files;
  // A recursive_directory_iterator would end at the first directory that it cannot read.
  std::vector<fs::path> directories = {directory};
  while (!directories.empty()) {
    const fs::path next = std::move(directories.back());
    directories.pop_back();
    std::error_code error;
    for (fs::directory_iterator at(next, error), end; !error && at != end; at.increment(error)) {
      std::error_code ignored;
      if (fs::is_directory(at->symlink_status(ignored))) {
        directories.push_back(at->path());
      } else if (is_wanted(at->path())) {
        files.push_back(at->path());
      }
    }
    if (error) {
      diagnostics.Problem(next.string() + ": cannot be read: " + error.message(), EX_NOINPUT);
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

using trainer::Error;

void MakeDirectory(const fs::path& directory) {
  const std::string obstacle = support::MakeDirectories(directory);
  if (!obstacle.empty()) {
    throw Error(EX_OSERR, "cannot make the directory " + directory.string() + ": " + obstacle);
  }
}

void Rename(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) throw Error(EX_OSERR, "cannot write " + to.string() + ": " + error.message());
}

void WriteFile(const fs::path& path, const std::string& text) {
  if (path.has_parent_path()) MakeDirectory(path.parent_path());
  const int error = support::ReplaceFile(path, text);
  if (error != 0) throw trainer::OsError("cannot write " + path.string(), error);
}

bool Exists(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

std::string LastLineOf(const fs::path& path) {
  std::string last;
  try {
    LogLines lines(path);
    for (LogLine line; lines.Next(line);) {
      if (!line.text.empty()) last = line.text;
    }
  } catch (const Error&) {
    return "";
  }
  return last;
}

ScratchDirectory::ScratchDirectory(const std::string& name) {
  std::error_code error;
  std::string path = (std::filesystem::temp_directory_path(error) / (name + ".XXXXXX")).string();
  if (error) throw trainer::Error(EX_OSERR, "TMPDIR is no directory: " + error.message());
  if (::mkdtemp(path.data()) == nullptr) {
    throw trainer::OsError("cannot make the directory " + path, errno);
  }
  path_ = path;
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace bench
