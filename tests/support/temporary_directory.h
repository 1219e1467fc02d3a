// SPDX-License-Identifier: Apache-2.0
//
// Directories that go away with the test that has made them.

#pragma once

#include <stdlib.h>

#include <stdexcept>

#include "tests/support/test.h"

namespace tests {

class TemporaryDirectory {
 public:
  explicit TemporaryDirectory(const fs::path& parent = fs::temp_directory_path()) {
    std::string name = (parent / "ddlrun-test-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp " + name);
    path_ = name;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const fs::path& path() const { return path_; }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

  // Makes the directories above the file, too.
  fs::path Write(const fs::path& name, const std::string& text) const {
    const fs::path path = path_ / name.relative_path();
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  fs::path WriteScript(const std::string& name, const std::string& commands) const {
    const fs::path path = Write(name, "#!/bin/sh\n" + commands + "\n");
    fs::permissions(path, fs::perms::owner_all);
    return path;
  }

 private:
  fs::path path_;
};

// The whole text of a file; "" where it cannot be read.
inline std::string TextOf(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// For tests that have a directory each.
class DirectoryTest : public testing::Test {
 protected:
  fs::path Write(const fs::path& name, const std::string& text) const {
    return temporary_.Write(name, text);
  }

  const TemporaryDirectory temporary_;
  const fs::path directory_ = temporary_.path();
};

}  // namespace tests

using tests::TemporaryDirectory;
