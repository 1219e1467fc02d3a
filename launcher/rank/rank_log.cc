// SPDX-License-Identifier: Apache-2.0

#include "launcher/rank/rank_log.h"

#include <fcntl.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "launcher/error.h"

namespace launcher {

int OpenRankLog(const std::string& directory, int rank) {
  std::array<char, 32> name = {};
  std::snprintf(name.data(), name.size(), "/rank-%05d.log", rank);
  const std::string path = directory + name.data();
  const int fd = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (fd >= 0) return fd;
  throw LaunchError(EX_OSERR, "cannot write " + path + ": " + std::strerror(errno) +
                                  "; --log-dir must be a directory that all nodes share");
}

}  // namespace launcher
