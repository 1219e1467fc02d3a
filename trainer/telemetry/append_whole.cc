// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/append_whole.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

namespace trainer {

Appended AppendWhole(int fd, std::string_view text, bool is_own) {
  struct stat before {};
  const bool is_file = is_own && ::fstat(fd, &before) == 0 && S_ISREG(before.st_mode);
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = ::write(fd, text.data() + done, text.size() - done);
    if (count >= 0) {
      done += static_cast<std::size_t>(count);
    } else if (errno != EINTR) {
      const int error = errno;
      return {error, done == 0 || (is_file && ::ftruncate(fd, before.st_size) == 0)};
    }
  }
  return {};
}

}  // namespace trainer
