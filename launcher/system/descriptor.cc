// SPDX-License-Identifier: Apache-2.0

#include "launcher/system/descriptor.h"

#include <unistd.h>

namespace launcher {

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    Close();
    fd_ = other.fd_;
    other.fd_ = -1;
  }
  return *this;
}

void Descriptor::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

}  // namespace launcher
