// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/redrawn_line.h"

#include <string>

namespace trainer {

void RedrawnLine::Draw(std::string_view text) {
  const std::lock_guard lock(mutex_);
  // In one piece: other ranks may have the same terminal.
  out_ << "\r" + std::string(text) + "\x1b[K" << std::flush;
  is_open_ = true;
}

void RedrawnLine::Write(std::string_view lines) {
  const std::lock_guard lock(mutex_);
  EndLocked();
  out_ << lines << std::flush;
}

void RedrawnLine::End() {
  const std::lock_guard lock(mutex_);
  EndLocked();
}

void RedrawnLine::EndLocked() {
  if (is_open_) out_ << "\n" << std::flush;
  is_open_ = false;
}

}  // namespace trainer
