// SPDX-License-Identifier: Apache-2.0

#include "launcher/system/output_queue.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "launcher/system/signal_relay.h"

namespace launcher {
namespace {

// How often WriteMessage looks for a signal, which the mask of the caller may keep pending.
constexpr std::chrono::milliseconds kLook{100};

}  // namespace

// O_NONBLOCK would hold for every program that shares the open file, such as the shell on its
// terminal, so that ddlrun opens the file once more for itself.
OutputQueue::OutputQueue(int to) : to_(to) {
  struct stat info = {};
  if (fstat(to, &info) != 0) return;
  is_socket_ = S_ISSOCK(info.st_mode);
  is_file_ = S_ISREG(info.st_mode);
  if (!S_ISFIFO(info.st_mode) && !S_ISCHR(info.st_mode)) return;
  const std::string path = "/proc/self/fd/" + std::to_string(to);
  own_ = support::Descriptor(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

void OutputQueue::Add(std::string_view text) {
  if (is_closed_) return;
  if (drops_ && IsFull()) {
    CountDropped(text);
    return;
  }
  if (waiting_.empty()) taken_at_ = Clock::now();
  waiting_.append(text);
}

bool OutputQueue::Write() {
  std::size_t written = 0;
  while (written < waiting_.size()) {
    const ssize_t size = WriteSome(std::string_view(waiting_).substr(written));
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) break;
    // A file has no reader who could be gone: a file system that failed may be well again for the
    // next line.
    if (size < 0 && (is_file_ || errno == ENOSPC || errno == EDQUOT)) {
      problem_ = std::strerror(errno);
      CountDropped(std::string_view(waiting_).substr(written));
      waiting_.clear();
      return true;
    }
    if (size < 0) {
      waiting_.clear();
      is_closed_ = true;
      return false;
    }
    written += static_cast<std::size_t>(size);
  }
  if (written > 0) taken_at_ = Clock::now();
  waiting_.erase(0, written);
  return true;
}

// As write(), but -1 with EAGAIN instead of waiting.
ssize_t OutputQueue::WriteSome(std::string_view text) const {
  if (is_socket_) return send(to_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (own_.is_open() || is_file_) return write(fd(), text.data(), text.size());
  // A pipe or terminal of another user cannot be opened.  When poll calls it ready it takes
  // PIPE_BUF bytes without waiting.
  pollfd ready = {to_, POLLOUT, 0};
  if (poll(&ready, 1, 0) == 0) {
    errno = EAGAIN;
    return -1;
  }
  return write(to_, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
}

void OutputQueue::DropAll() {
  CountDropped(waiting_);
  waiting_.clear();
}

void OutputQueue::CountDropped(std::string_view text) {
  dropped_lines_ += std::count(text.begin(), text.end(), '\n');
}

bool AreSameFile(int fd, int other) {
  struct stat info = {};
  struct stat info_of_other = {};
  return fstat(fd, &info) == 0 && fstat(other, &info_of_other) == 0 &&
         info.st_dev == info_of_other.st_dev && info.st_ino == info_of_other.st_ino;
}

void WriteMessage(int to, std::string_view text, bool is_stop_requested,
                  std::chrono::milliseconds timeout) {
  OutputQueue queue(to);
  queue.Add(text);
  std::optional<OutputQueue::Clock::time_point> end;
  while (queue.Write() && !queue.IsEmpty()) {
    const auto now = OutputQueue::Clock::now();
    if (!end && (is_stop_requested || IsStopRequestPending())) end = now + timeout;
    if (end && now >= *end) return;
    pollfd ready = {queue.fd(), POLLOUT, 0};
    poll(&ready, 1, static_cast<int>(kLook.count()));
  }
}

}  // namespace launcher
