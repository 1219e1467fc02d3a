// SPDX-License-Identifier: Apache-2.0

#include "launcher/launch/plain_path.h"

#include <fcntl.h>
#include <unistd.h>

namespace launcher {

PlainPath::PlainPath(const std::string& path) : path_(path) {
  if (path.find_first_of(":-") == std::string::npos) return;
  file_ = support::Descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file_.is_open()) return;
  path_ = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file_.fd());
}

}  // namespace launcher
