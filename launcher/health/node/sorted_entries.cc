// SPDX-License-Identifier: Apache-2.0

#include "launcher/health/node/sorted_entries.h"

#include <algorithm>
#include <system_error>

namespace launcher {

namespace fs = std::filesystem;

std::vector<fs::path> SortedEntries(const fs::path& directory) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    entries.push_back(entry->path());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

}  // namespace launcher
