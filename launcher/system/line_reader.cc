// SPDX-License-Identifier: Apache-2.0

#include "launcher/system/line_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace launcher {
namespace {

constexpr std::size_t kMaxReadBytes = 65536;  // at one Read()

}  // namespace

LineReader::LineReader(support::Descriptor from, Unit unit,
                       std::function<void(std::string_view)> on_text)
    : from_(std::move(from)), unit_(unit), on_text_(std::move(on_text)) {}

bool LineReader::Read() {
  std::array<char, 16384> chunk;
  std::size_t total = 0;
  while (from_.is_open() && total < kMaxReadBytes) {
    // When no bytes are left to be read, read() returns 0, as at the end of the input.
    const ssize_t got = read(from_.fd(), chunk.data(), std::min(chunk.size(), left_));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    if (got <= 0) {
      from_.Close();
      Give(pending_.size());
      return true;
    }
    total += static_cast<std::size_t>(got);
    if (left_ != std::string::npos) left_ -= static_cast<std::size_t>(got);
    const std::string_view added(chunk.data(), static_cast<std::size_t>(got));
    const std::size_t end = added.find_last_of("\n\r");  // there is none in what was pending
    std::size_t bytes = end == std::string_view::npos ? 0 : pending_.size() + end + 1;
    pending_ += added;
    const bool is_too_long = bytes == 0 && pending_.size() > kMaxLineBytes;
    if (unit_ == Unit::kChunks || is_too_long) bytes = pending_.size();
    Give(bytes);
  }
  return total > 0;
}

void LineReader::ReadNoMoreThanThePipeHolds() {
  const int bytes = fcntl(from_.fd(), F_GETPIPE_SZ);
  if (bytes > 0) left_ = static_cast<std::size_t>(bytes);
}

void LineReader::Give(std::size_t bytes) {
  const std::string text = pending_.substr(0, bytes);
  pending_.erase(0, bytes);
  std::string_view left = text;
  while (!left.empty()) {
    std::size_t size = left.size();
    if (unit_ == Unit::kLines) size = std::min(FindLineEnd(left), size - 1) + 1;
    on_text_(left.substr(0, size));
    left.remove_prefix(size);
  }
}

std::string_view WithoutEnd(std::string_view line) {
  if (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace launcher
