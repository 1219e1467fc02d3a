// SPDX-License-Identifier: Apache-2.0

#include "bench/run_log/log_lines.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "trainer/core/error.h"

namespace bench {
namespace {

constexpr std::size_t kReadBytes = std::size_t{256} * 1024;

trainer::Error CannotRead(const std::filesystem::path& path, const std::string& why) {
  return {EX_NOINPUT, path.string() + ": cannot be read: " + why};
}

}  // namespace

LogLines::LogLines(const std::filesystem::path& path, bool is_growing)
    : path_(path), is_growing_(is_growing), buffer_(kReadBytes) {
  // O_NONBLOCK: a FIFO without a writer must not hang us.
  file_ = support::Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file_.is_open()) throw CannotRead(path, std::generic_category().message(errno));
  struct stat status {};
  if (::fstat(file_.fd(), &status) != 0 || !S_ISREG(status.st_mode)) {
    throw CannotRead(path, "it is no regular file");
  }
}

bool LogLines::Fill() {
  for (;;) {
    const ssize_t count = ::read(file_.fd(), buffer_.data(), buffer_.size());
    if (count >= 0) {
      unread_ = {buffer_.data(), static_cast<std::size_t>(count)};
      return count > 0;
    }
    if (errno != EINTR) throw CannotRead(path_, std::generic_category().message(errno));
  }
}

bool LogLines::Next(LogLine& line) {
  if (!is_in_line_) {
    text_.clear();
    is_cut_ = false;
  }
  bool is_whole = false;
  while (!is_whole && (!unread_.empty() || Fill())) {
    is_in_line_ = true;
    const std::size_t end = unread_.find('\n');
    const std::string_view part = unread_.substr(0, end);
    const std::size_t room = kMaxLineBytes - text_.size();
    text_.append(part.substr(0, room));
    is_cut_ = is_cut_ || part.size() > room;
    is_whole = end != std::string_view::npos;
    unread_.remove_prefix(is_whole ? end + 1 : unread_.size());
  }
  if (!is_in_line_ || (is_growing_ && !is_whole)) return false;
  is_in_line_ = false;
  line = {text_, ++number_, is_whole, is_cut_};
  return true;
}

bool IsUtf8(std::string_view text) {
  const auto byte_at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  for (std::size_t i = 0; i < text.size();) {
    const unsigned char first = byte_at(i);
    if (first < 0x80) {
      ++i;
      continue;
    }
    // The second byte's range keeps out what is overlong, a surrogate, or beyond U+10FFFF.
    std::size_t length = 0;
    unsigned char low = 0x80;
    unsigned char high = 0xBF;
    if (first >= 0xC2 && first <= 0xDF) {
      length = 2;
    } else if (first >= 0xE0 && first <= 0xEF) {
      length = 3;
      if (first == 0xE0) low = 0xA0;
      if (first == 0xED) high = 0x9F;
    } else if (first >= 0xF0 && first <= 0xF4) {
      length = 4;
      if (first == 0xF0) low = 0x90;
      if (first == 0xF4) high = 0x8F;
    }
    if (length == 0 || text.size() - i < length) return false;
    if (byte_at(i + 1) < low || byte_at(i + 1) > high) return false;
    for (std::size_t k = 2; k < length; ++k) {
      if (byte_at(i + k) < 0x80 || byte_at(i + k) > 0xBF) return false;
    }
    i += length;
  }
  return true;
}

}  // namespace bench
