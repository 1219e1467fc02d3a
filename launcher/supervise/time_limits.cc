// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/time_limits.h"

#include <algorithm>
#include <cmath>

#include "launcher/base/error.h"

namespace launcher {

int MillisecondsLeft(const std::vector<Deadline>& deadlines,
                     std::chrono::steady_clock::time_point now) {
  Deadline first;
  for (const Deadline& deadline : deadlines) {
    if (deadline && (!first || *deadline < *first)) first = deadline;
  }
  if (!first) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*first - now);
  return std::max(0, static_cast<int>(left.count()));
}

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
