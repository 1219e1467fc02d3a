// SPDX-License-Identifier: Apache-2.0

#include "launcher/health/node/kernel_text.h"

#include <algorithm>
#include <fstream>
#include <system_error>

namespace launcher {

namespace fs = std::filesystem;

std::string FirstLine(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string Trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\"");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\"") + 1 - first);
}

std::string ValueOf(const fs::path& path, const std::string& key, char separator) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    const std::size_t at = line.find(separator);
    if (at != std::string::npos && Trimmed(line.substr(0, at)) == key) {
      return Trimmed(line.substr(at + 1));
    }
  }
  return "";
}

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
