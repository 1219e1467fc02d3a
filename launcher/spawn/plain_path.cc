// SPDX-License-Identifier: Apache-2.0

#include "launcher/spawn/plain_path.h"

#include <fcntl.h>
#include <unistd.h>

namespace launcher {

PlainPath::PlainPath(const std::string& path) : path_(path) {
  if (path.find_first_of(":-") == std::string::npos) return;
  fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd_ >= 0) path_ = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(fd_);
}

PlainPath::~PlainPath() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace launcher
