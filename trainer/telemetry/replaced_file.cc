// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/replaced_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

namespace trainer {

// One name for all processes: what a killed one has left is overwritten by the next.
ReplacedFile::ReplacedFile(std::filesystem::path path, std::function<void(int error)> on_loss)
    : path_(std::move(path)), partial_(path_.string() + ".partial"), on_loss_(std::move(on_loss)) {}

void ReplacedFile::Write(std::string_view text) {
  const int error = TryWrite(text);
  const bool was_losing = std::exchange(is_losing_, error != 0);
  if (is_losing_ && !was_losing) on_loss_(error);
}

int ReplacedFile::TryWrite(std::string_view text) const {
  int error = WriteBeside(text);
  if (error == 0 && std::rename(partial_.c_str(), path_.c_str()) != 0) error = errno;
  if (error != 0) ::unlink(partial_.c_str());
  return error;
}

int ReplacedFile::WriteBeside(std::string_view text) const {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  const int fd = ::open(partial_.c_str(), kFlags, 0666);
  if (fd < 0) return errno;
  int error = 0;
  while (!text.empty() && error == 0) {
    const ssize_t count = ::write(fd, text.data(), text.size());
    if (count >= 0) {
      text.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno != EINTR) {
      error = errno;
    }
  }
  // Some file systems tell of a full disk only here.
  if (::close(fd) != 0 && error == 0) error = errno;
  return error;
}

}  // namespace trainer
