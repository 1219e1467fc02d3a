// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/time_limit_watcher.h"

#include <algorithm>
#include <cmath>

#include "launcher/base/error.h"

namespace launcher {

TimeLimitWatcher::TimeLimitWatcher(const TimeLimitWatcherOptions& options)
    : options_(options), end_(options.end) {
  if (end_) notify_at_ = *end_ - options.margin;
}

std::optional<TimeLimitWatcher::Clock::time_point> TimeLimitWatcher::deadline() const {
  if (question_ != nullptr) return answer_until_;
  if (!notify_at_ || has_queried_) return notify_at_;
  return *notify_at_ - kAhead;
}

bool TimeLimitWatcher::Look(Clock::time_point now) {
  if (!notify_at_) return false;
  if (question_ != nullptr && (question_->HasEnded() || now >= answer_until_)) TakeAnswer();
  if (!notify_at_) return false;
  if (!has_queried_ && now >= *notify_at_ - kAhead) Ask(now);
  if (question_ != nullptr || now < *notify_at_) return false;
  notify_at_.reset();
  return true;
}

std::string TimeLimitWatcher::Note() const {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(options_.margin).count();
  return std::string("ranks got ") + (options_.signal == SIGUSR2 ? "SIGUSR2 " : "SIGUSR1 ") +
         std::to_string(seconds) + " s before the end of the job's time (--stop-before)";
}

void TimeLimitWatcher::Ask(Clock::time_point now) {
  has_queried_ = true;
  queried_at_ = now;
  answer_until_ = std::max(*notify_at_, now + kAhead);
  if (options_.question.empty()) return;
  try {
    question_ = std::make_unique<CommandOutput>(options_.question, options_.environment);
  } catch (const LaunchError&) {
    // The machine may have no process left; the end that was known counts.
  }
}

void TimeLimitWatcher::TakeAnswer() {
  const bool is_answer = question_->Wait(std::chrono::milliseconds(0));
  const auto left = is_answer ? options_.seconds_left(question_->text()) : std::nullopt;
  question_.reset();
  if (!left) return;
  if (std::isinf(*left)) {
    end_.reset();
    notify_at_.reset();
    return;
  }
  // Slurm has counted since it was asked at the earliest.
  const auto end = queried_at_ + std::chrono::duration_cast<Clock::duration>(
                                     std::chrono::duration<double>(*left));
  if (end <= *end_ + kSlack) return;
  end_ = end;
  notify_at_ = end - options_.margin;
  has_queried_ = false;
}

}  // namespace launcher
