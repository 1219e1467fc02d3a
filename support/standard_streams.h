// SPDX-License-Identifier: Apache-2.0
//
// For the start of a program.  Without the C++ library, which the shim does not have.

#pragma once

#include <fcntl.h>
#include <unistd.h>

namespace support {

// Opens /dev/null instead of each standard stream that is closed: a pipe or file that is opened
// later would otherwise get its number, and be taken for it.
inline void OpenStandardStreams() {
  // The lowest free descriptor is the one that open gives.
  for (int fd = open("/dev/null", O_RDWR); fd >= 0; fd = open("/dev/null", O_RDWR)) {
    if (fd <= STDERR_FILENO) continue;
    close(fd);
    return;
  }
}

}  // namespace support
