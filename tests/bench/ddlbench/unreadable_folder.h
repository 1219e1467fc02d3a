// SPDX-License-Identifier: Apache-2.0
//
// A folder that may not be read, also where the tests run as root, whom no mode keeps out: it is
// another user who reads as long as this lives.

#pragma once

#include <unistd.h>

#include <filesystem>
#include <system_error>

namespace bench {

class UnreadableFolder {
 public:
  explicit UnreadableFolder(const std::filesystem::path& folder) : folder_(folder) {
    std::filesystem::permissions(folder_, std::filesystem::perms::none);
    is_root_ = ::geteuid() == 0 && ::seteuid(kNobody) == 0;
  }
  ~UnreadableFolder() {
    if (is_root_ && ::seteuid(0) != 0) ::_exit(1);
    std::filesystem::permissions(folder_, std::filesystem::perms::owner_all);
  }
  UnreadableFolder(const UnreadableFolder&) = delete;
  UnreadableFolder& operator=(const UnreadableFolder&) = delete;

  // False where there is no other user to become, or who could reach the tests' folder.
  bool works() const {
    std::error_code error;
    const std::filesystem::directory_iterator around(folder_.parent_path(), error);
    if (error) return false;
    const std::filesystem::directory_iterator within(folder_, error);
    return static_cast<bool>(error);
  }

 private:
  static constexpr uid_t kNobody = 65534;

  const std::filesystem::path folder_;
  bool is_root_ = false;
};

}  // namespace bench
