// SPDX-License-Identifier: Apache-2.0
//
// A directory that may not be read, also where the tests run as root, whom no mode keeps out: it is
// another user who reads as long as this lives.

#pragma once

#include <unistd.h>

#include <filesystem>
#include <system_error>

namespace bench {

class UnreadableDirectory {
 public:
  explicit UnreadableDirectory(const std::filesystem::path& directory) : directory_(directory) {
    std::filesystem::permissions(directory_, std::filesystem::perms::none);
    is_root_ = ::geteuid() == 0 && ::seteuid(kNobody) == 0;
  }
  ~UnreadableDirectory() {
    if (is_root_ && ::seteuid(0) != 0) ::_exit(1);
    std::filesystem::permissions(directory_, std::filesystem::perms::owner_all);
  }
  UnreadableDirectory(const UnreadableDirectory&) = delete;
  UnreadableDirectory& operator=(const UnreadableDirectory&) = delete;

  // False where there is no other user to become, or who could reach the tests' directory.
  bool works() const {
    std::error_code error;
    const std::filesystem::directory_iterator around(directory_.parent_path(), error);
    if (error) return false;
    const std::filesystem::directory_iterator within(directory_, error);
    return static_cast<bool>(error);
  }

 private:
  static constexpr uid_t kNobody = 65534;

  const std::filesystem::path directory_;
  bool is_root_ = false;
};

}  // namespace bench
