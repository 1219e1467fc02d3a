// SPDX-License-Identifier: Apache-2.0
//
// A directory of a benchmark's own for what it does not keep (0700), below TMPDIR or /tmp.

#pragma once

#include <filesystem>
#include <string>

namespace bench {

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
