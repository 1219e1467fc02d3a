// SPDX-License-Identifier: Apache-2.0
//
// Directories and files that ddlbench makes.  Each throws trainer::Error(EX_OSERR) that names the
// path when it cannot.

#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "bench/base/diagnostics.h"

namespace bench {

// The files of a directory and of those below it for which `is_wanted` holds, by name; links to
// directories are not followed.  Each directory that cannot be read is a problem of its own, with
// EX_NOINPUT, and the others are read all the same.
std::vector<std::filesystem::path> FilesBelow(
    const std::filesystem::path& directory,
    const std::function<bool(const std::filesystem::path&)>& is_wanted, Diagnostics& diagnostics);

// With the directories above it; one that is there is fine.
void MakeDirectory(const std::filesystem::path& directory);

void Rename(const std::filesystem::path& from, const std::filesystem::path& to);

// Whole or not at all (support/file.h), in a directory that is made if need be.
void WriteFile(const std::filesystem::path& path, const std::string& text);

bool Exists(const std::filesystem::path& path);

// The last line of a log that is not empty; "" when there is none or it cannot be read.
std::string LastLineOf(const std::filesystem::path& path);

// A directory of a benchmark's own for what it does not keep (0700), below TMPDIR or /tmp.

class ScratchDirectory {
 public:
  // Its name begins with `name`.  Throws trainer::Error(EX_OSERR) when it cannot be made.
  explicit ScratchDirectory(const std::string& name);
  // Removes it with all that is in it.
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace bench
