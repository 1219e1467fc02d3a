// SPDX-License-Identifier: Apache-2.0
//
// The owner of a file descriptor: of a file, a pipe, a socket, whatever has one.

#pragma once

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace support {

class Descriptor {
 public:
  Descriptor() = default;
  // Takes `fd`; a negative one is none.
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { Close(); }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      Close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }

  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  // Returns 0 or errno: some file systems tell of a full disk only here.  It is closed either way.
  // The destructor keeps errno.
  int Close() {
    if (fd_ < 0) return 0;
    const int before = errno;
    const int error = ::close(std::exchange(fd_, -1)) != 0 && errno != EINTR ? errno : 0;
    errno = before;
    return error;
  }

 private:
  int fd_ = -1;
};

}  // namespace support
