// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/text/line_output.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "trainer/telemetry/text/append_whole.h"

namespace trainer {

LineOutput::LineOutput(int fd, bool is_own, std::function<void(int error)> on_loss,
                       std::function<void()> before_lines)
    : fd_(fd),
      is_own_(is_own),
      on_loss_(std::move(on_loss)),
      before_lines_(std::move(before_lines)) {}

LineOutput::int_type LineOutput::overflow(int_type character) {
  if (character != traits_type::eof()) pending_ += traits_type::to_char_type(character);
  return traits_type::not_eof(character);
}

std::streamsize LineOutput::xsputn(const char* text, std::streamsize count) {
  pending_.append(text, static_cast<std::size_t>(count));
  return count;
}

// 0, or errno; then the file is as it was before, or torn.
int LineOutput::Write(std::string_view text) {
  const Appended appended = AppendWhole(fd_, text, is_own_);
  is_torn_ = is_torn_ || !appended.is_whole;
  return appended.error;
}

void LineOutput::Lose(int error) {
  lost_lines_ += std::ranges::count(pending_, '\n');
  if (!std::exchange(is_losing_, true)) on_loss_(error);
}

int LineOutput::sync() {
  if (pending_.empty()) return 0;
  if (before_lines_) before_lines_();
  if (is_torn_) pending_.insert(pending_.begin(), '\n');
  const bool was_torn = std::exchange(is_torn_, false);
  if (const int error = Write(pending_); error != 0) {
    if (was_torn) {
      is_torn_ = true;
      pending_.erase(pending_.begin());
    }
    Lose(error);
  } else {
    is_losing_ = false;
  }
  pending_.clear();
  return 0;
}

}  // namespace trainer
