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

}  // namespace

std::vector<std::byte> ReadWholeFile(const std::string& path) {
  // O_NONBLOCK: a FIFO in the place of the file must not hang us.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    if (errno == ENOENT) throw Error(EX_DATAERR, path + ": there is no such file");
    throw OsError("cannot open " + path, errno);
  }
  const Descriptor descriptor(fd);
  struct stat status {};
  if (::fstat(fd, &status) != 0) throw OsError("cannot read " + path, errno);
  if (!S_ISREG(status.st_mode)) throw Error(EX_DATAERR, path + ": not a regular file");

  std::vector<std::byte> bytes(static_cast<std::size_t>(status.st_size));
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::read(fd, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw OsError("cannot read " + path, errno);
    if (count == 0) break;  // it shrank meanwhile; what is missing is found by who parses it
    done += static_cast<std::size_t>(count);
  }
  bytes.resize(done);
  return bytes;
}

}  // namespace trainer
