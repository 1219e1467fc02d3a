// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/text/append_whole.h"

#include <sys/stat.h>
#include <unistd.h>

#include "support/file.h"

namespace trainer {

Appended AppendWhole(int fd, std::string_view text, bool is_own) {
  struct stat before {};
  const bool is_file = is_own && ::fstat(fd, &before) == 0 && S_ISREG(before.st_mode);
  const support::Transfer written = support::WriteAll(fd, text);
  if (written.error == 0) return {};
  return {written.error, written.bytes == 0 || (is_file && ::ftruncate(fd, before.st_size) == 0)};
}

}  // namespace trainer
