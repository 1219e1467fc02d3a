// SPDX-License-Identifier: Apache-2.0
//
// A file in memory for code that reads files by their names.

#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

namespace fuzz {

// The name of the one such file of this process, which has `bytes` from now on.
inline std::string MemoryFile(std::span<const std::uint8_t> bytes) {
  static const int fd = ::memfd_create("fuzz", 0);
  const auto size = static_cast<ssize_t>(bytes.size());
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, bytes.data(), bytes.size(), 0) != size) std::abort();
  return "/proc/self/fd/" + std::to_string(fd);
}

}  // namespace fuzz
