// SPDX-License-Identifier: Apache-2.0

#include "trainer/checkpoint/whole_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "trainer/core/error.h"

namespace trainer {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { ::close(fd_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

[[noreturn]] void Fail(const std::string& action, int error) {
  const Error failure = OsError(action, error);
  if (error == ENOMEM || error == EMFILE || error == ENFILE) {
    throw Shortage(EX_OSERR, failure.what());
  }
  throw failure;
}

}  // namespace

std::vector<std::byte> ReadWholeBytes(const std::string& path, std::uint64_t max_bytes) {
  // O_NONBLOCK: a FIFO in the place of the file must not hang us.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    if (errno == ENOENT) throw Error(EX_DATAERR, path + ": there is no such file");
    Fail("cannot open " + path, errno);
  }
  const Descriptor descriptor(fd);
  struct stat status {};
  if (::fstat(fd, &status) != 0) Fail("cannot read " + path, errno);
  if (!S_ISREG(status.st_mode)) throw Error(EX_DATAERR, path + ": not a regular file");
  if (static_cast<std::uint64_t>(status.st_size) > max_bytes) {
    throw Error(EX_DATAERR, path + ": it has " + std::to_string(status.st_size) +
                                " bytes, more than the " + std::to_string(max_bytes) +
                                " that it may have");
  }

  std::vector<std::byte> bytes(static_cast<std::size_t>(status.st_size));
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::read(fd, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) Fail("cannot read " + path, errno);
    if (count == 0) break;  // it shrank meanwhile; what is missing is found by who parses it
    done += static_cast<std::size_t>(count);
  }
  bytes.resize(done);
  return bytes;
}

}  // namespace trainer
