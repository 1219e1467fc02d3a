// SPDX-License-Identifier: Apache-2.0
//
// When the ranks are to be told that the time of their Slurm job ends (--stop-before).  Slurm is
// asked once more just before, since the limit may have been extended meanwhile.
//
// For one thread, which never waits here for Slurm's answer.

#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/base/environment.h"
#include "launcher/system/child_process.h"

namespace launcher {

struct TimeLimitWatcherOptions {
  // As far as it is known at the start; nullopt: the ranks are told nothing.
  std::optional<std::chrono::steady_clock::time_point> end;
  std::chrono::milliseconds margin{0};  // before the end, when they are told
  int signal = SIGUSR1;                 // by this one, or SIGUSR2
  // A command that prints what Slurm says about the job; its first word is a path.  Empty: nobody
  // is asked.
  std::vector<std::string> question;
  Environment environment;  // of that command
  // Reads what it has printed: seconds until the end, infinity without a limit; nullopt for any
  // other text.
  std::function<std::optional<double>(const std::string& text)> seconds_left;
};

class TimeLimitWatcher {
 public:
  using Clock = std::chrono::steady_clock;
  // How long before the ranks are to be told Slurm is asked; it has as long for its answer.
  static constexpr std::chrono::milliseconds kAhead{5000};
  // By how much an end must be later to be another one: Slurm counts in seconds.
  static constexpr std::chrono::milliseconds kSlack{2000};

  // `options` outlives this object.
  explicit TimeLimitWatcher(const TimeLimitWatcherOptions& options);

  // When Look is to be called, though no child has ended; nullopt: never.
  std::optional<Clock::time_point> deadline() const;
  // Whether the ranks are to be told now.  True only once.  An end that is near or over by now, as
  // one that was known to an earlier start of the ranks may be, is asked for before.
  bool Look(Clock::time_point now);
  int signal() const { return options_.signal; }
  // What the user is told then, without a line end.
  std::string Note() const;
  // The end as it is known now; nullopt: there is none.
  std::optional<Clock::time_point> end() const { return end_; }

  // The process that asks Slurm, a child of this one; 0: none.
  pid_t question() const { return question_ != nullptr ? question_->pid() : 0; }
  // Ends that process.  The answer is not waited for.
  void StopAsking() { question_.reset(); }

 private:
  void Ask(Clock::time_point now);
  void TakeAnswer();

  const TimeLimitWatcherOptions& options_;
  std::optional<Clock::time_point> end_;
  std::optional<Clock::time_point> notify_at_;
  bool has_queried_ = false;
  Clock::time_point queried_at_;
  Clock::time_point answer_until_;
  std::unique_ptr<CommandOutput> question_;  // while it runs
};

}  // namespace launcher
