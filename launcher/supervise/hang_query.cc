// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/hang_query.h"

#include "launcher/base/error.h"

namespace launcher {

bool HangQuery::Begin(const OwnEnd& end, bool is_kill, Clock::time_point now) {
  if (options_.command.empty()) return false;
  try {
    command_ = std::make_unique<CommandOutput>(options_.command, options_.environment);
  } catch (const LaunchError&) {
    return false;  // the machine may have no process left
  }
  postponed_ = {end, is_kill};
  until_ = now + options_.limit;
  return true;
}

std::optional<HangQuery::Postponed> HangQuery::Take(Clock::time_point now) {
  if (!IsPending() || (!command_->HasEnded() && now < until_)) return std::nullopt;
  if (command_->Wait(std::chrono::milliseconds(0))) {
    const std::string answer = LastLineOf(command_->text());
    if (!answer.empty()) postponed_.end.text += "; " + answer;
  }
  command_.reset();
  return postponed_;
}

}  // namespace launcher
