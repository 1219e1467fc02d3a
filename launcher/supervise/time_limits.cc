// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/time_limits.h"

namespace launcher {

void TimeLimits::ExpectStart(Clock::time_point now) {
  is_starting_ = true;
  Limit(start_, now);
}

void TimeLimits::AwaitResources() {
  if (is_starting_) deadline_.reset();
}

void TimeLimits::SetStarted(std::size_t ranks, Clock::time_point now) {
  if (!is_starting_ || ranks != ranks_) return;
  GiveStartUp();
  SetEnded(ended_, now);
}

void TimeLimits::GiveStartUp() {
  is_starting_ = false;
  deadline_.reset();
}

void TimeLimits::SetEnded(std::size_t ranks, Clock::time_point now) {
  ended_ = ranks;
  if (is_starting_) return;
  if (ended_ == 0 || ended_ == ranks_) {
    deadline_.reset();
  } else if (!deadline_) {
    Limit(end_, now);
  }
}

void TimeLimits::BeginAnew(Clock::time_point now) {
  if (deadline_) Limit(is_starting_ ? start_ : end_, now);
}

TimeLimits::Over TimeLimits::Look(Clock::time_point now) const {
  if (!deadline_ || now < *deadline_) return Over::kNothing;
  return is_starting_ ? Over::kStart : Over::kEnd;
}

void TimeLimits::Limit(std::chrono::milliseconds limit, Clock::time_point now) {
  deadline_.reset();
  if (limit.count() > 0) deadline_ = now + limit;
}

}  // namespace launcher
