// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/text/redrawn_line.h"

#include <string>

namespace trainer {

void RedrawnLine::Draw(std::string_view text) {
  const std::lock_guard lock(mutex_);
  // In one piece: other ranks may have the same terminal.
  Put("\r" + std::string(text) + "\x1b[K");
  is_open_ = true;
}

void RedrawnLine::Write(std::string_view lines) {
  const std::lock_guard lock(mutex_);
  EndLocked();
  Put(lines);
}

void RedrawnLine::End() {
  const std::lock_guard lock(mutex_);
  EndLocked();
}

void RedrawnLine::EndLocked() {
  if (is_open_) Put("\n");
  is_open_ = false;
}

void RedrawnLine::Put(std::string_view text) {
  out_.clear();  // what was lost before is no reason to lose this
  out_ << text << std::flush;
}

}  // namespace trainer
