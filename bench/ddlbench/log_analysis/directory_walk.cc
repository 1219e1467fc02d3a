// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/log_analysis/directory_walk.h"

#include <algorithm>
#include <system_error>
#include <utility>

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

}  // namespace bench
