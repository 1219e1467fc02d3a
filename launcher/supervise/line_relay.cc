// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/line_relay.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace launcher {
namespace {

bool WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd ready = {fd, POLLOUT, 0};
      poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace

LineRelay::LineRelay(Descriptor from, int to, std::string tag,
                     std::function<bool(std::string_view)> on_line)
    : from_(std::move(from)), to_(to), tag_(std::move(tag)), on_line_(std::move(on_line)) {}

bool LineRelay::Relay() {
  std::array<char, 16384> chunk;
  while (from_.is_open()) {
    const ssize_t got = read(from_.fd(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return true;
    if (got <= 0) {
      from_.Close();
      return PassOn(pending_.size());
    }
    pending_.append(chunk.data(), static_cast<std::size_t>(got));
    std::size_t bytes = pending_.find_last_of("\n\r") + 1;  // npos + 1 is 0
    if (bytes == 0 && pending_.size() > kMaxLineBytes) bytes = pending_.size();
    if (!PassOn(bytes)) return false;
  }
  return true;
}

bool LineRelay::PassOn(std::size_t bytes) {
  const std::string lines = pending_.substr(0, bytes);
  pending_.erase(0, bytes);
  std::string passed;
  std::size_t start = 0;
  while (start < lines.size()) {
    const std::size_t end = std::min(lines.find_first_of("\n\r", start), lines.size());
    if (on_line_(std::string_view(lines).substr(start, end - start))) {
      passed.append(tag_).append(lines, start, end + 1 - start);
    }
    start = end + 1;
  }
  return WriteAll(to_, passed);
}

}  // namespace launcher
