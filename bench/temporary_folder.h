// SPDX-License-Identifier: Apache-2.0
//
// A folder for what a benchmark writes, that is gone with the object.

#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

namespace bench {

class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& name) {
    std::string path = (std::filesystem::temp_directory_path() / (name + ".XXXXXX")).string();
    if (::mkdtemp(path.data()) == nullptr) throw std::runtime_error("cannot make " + path);
    path_ = path;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace bench
