// SPDX-License-Identifier: Apache-2.0

#include "launcher/shim/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

namespace launcher {

void OpenStandardStreams() {
  // The lowest free descriptor is the one that open gives.
  for (int fd = open("/dev/null", O_RDWR); fd >= 0; fd = open("/dev/null", O_RDWR)) {
    if (fd <= STDERR_FILENO) continue;
    close(fd);
    return;
  }
}

}  // namespace launcher
