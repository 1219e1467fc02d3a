// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/log_analysis/files.h"

#include <system_error>

#include "bench/run_log/log_lines.h"
#include "support/file.h"
#include "trainer/core/error.h"

namespace bench {

namespace fs = std::filesystem;
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

}  // namespace bench
