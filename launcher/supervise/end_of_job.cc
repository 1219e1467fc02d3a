// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/end_of_job.h"

#include <cmath>

#include "launcher/base/error.h"

namespace launcher {

EndOfJob::EndOfJob(const EndOfJobOptions& options) : options_(options) {
  if (options.end) tell_at_ = *options.end - options.margin;
}

std::optional<EndOfJob::Clock::time_point> EndOfJob::deadline() const {
  if (!tell_at_ || has_asked_) return tell_at_;
  return *tell_at_ - kAhead;
}

bool EndOfJob::Look(Clock::time_point now) {
  if (!tell_at_) return false;
  if (question_ != nullptr && (question_->HasEnded() || now >= *tell_at_)) TakeAnswer(now);
  if (!tell_at_) return false;
  if (!has_asked_ && now >= *tell_at_ - kAhead) Ask();
  if (question_ != nullptr || now < *tell_at_) return false;
  tell_at_.reset();
  return true;
}

void EndOfJob::Ask() {
  has_asked_ = true;
  if (options_.question.empty()) return;
  try {
    question_ = std::make_unique<CommandOutput>(options_.question, options_.environment);
  } catch (const LaunchError&) {
    // The machine may have no process left; the end that was known counts.
  }
}

void EndOfJob::TakeAnswer(Clock::time_point now) {
  const bool is_answer = question_->Wait(std::chrono::milliseconds(0));
  const auto left = is_answer ? options_.seconds_left(question_->text()) : std::nullopt;
  question_.reset();
  if (!left) return;
  if (std::isinf(*left)) return tell_at_.reset();
  const auto later =
      now - options_.margin +
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(*left));
  if (later <= *tell_at_ + kSlack) return;
  tell_at_ = later;
  has_asked_ = false;
}

}  // namespace launcher
