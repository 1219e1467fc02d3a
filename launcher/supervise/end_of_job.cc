// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/end_of_job.h"

#include <algorithm>
#include <cmath>

#include "launcher/base/error.h"

namespace launcher {

EndOfJob::EndOfJob(const EndOfJobOptions& options) : options_(options), end_(options.end) {
  if (end_) tell_at_ = *end_ - options.margin;
}

std::optional<EndOfJob::Clock::time_point> EndOfJob::deadline() const {
  if (question_ != nullptr) return answer_until_;
  if (!tell_at_ || has_asked_) return tell_at_;
  return *tell_at_ - kAhead;
}

bool EndOfJob::Look(Clock::time_point now) {
  if (!tell_at_) return false;
  if (question_ != nullptr && (question_->HasEnded() || now >= answer_until_)) TakeAnswer();
  if (!tell_at_) return false;
  if (!has_asked_ && now >= *tell_at_ - kAhead) Ask(now);
  if (question_ != nullptr || now < *tell_at_) return false;
  tell_at_.reset();
  return true;
}

std::string EndOfJob::Note() const {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(options_.margin).count();
  return std::string("ranks got ") + (options_.signal == SIGUSR2 ? "SIGUSR2 " : "SIGUSR1 ") +
         std::to_string(seconds) + " s before the end of the job's time (--stop-before)";
}

void EndOfJob::Ask(Clock::time_point now) {
  has_asked_ = true;
  asked_at_ = now;
  answer_until_ = std::max(*tell_at_, now + kAhead);
  if (options_.question.empty()) return;
  try {
    question_ = std::make_unique<CommandOutput>(options_.question, options_.environment);
  } catch (const LaunchError&) {
    // The machine may have no process left; the end that was known counts.
  }
}

void EndOfJob::TakeAnswer() {
  const bool is_answer = question_->Wait(std::chrono::milliseconds(0));
  const auto left = is_answer ? options_.seconds_left(question_->text()) : std::nullopt;
  question_.reset();
  if (!left) return;
  if (std::isinf(*left)) {
    end_.reset();
    tell_at_.reset();
    return;
  }
  // Slurm has counted since it was asked at the earliest.
  const auto end =
      asked_at_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(*left));
  if (end <= *end_ + kSlack) return;
  end_ = end;
  tell_at_ = end - options_.margin;
  has_asked_ = false;
}

}  // namespace launcher
