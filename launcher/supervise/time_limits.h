// SPDX-License-Identifier: Apache-2.0
//
// How long the ranks of a job may take to start, and how long to end once one of them has.  Pure:
// the time is told.

#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/base/environment.h"
#include "launcher/system/child_process.h"

namespace launcher {

// How long to wait when there are several deadlines, of which some may not be set.  Pure.

using Deadline = std::optional<std::chrono::steady_clock::time_point>;

// As poll wants it: milliseconds until the first of them, rounded up; 0 when it is over, -1 when
// none is set.
int MillisecondsLeft(const std::vector<Deadline>& deadlines,
                     std::chrono::steady_clock::time_point now);

class TimeLimits {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Over { kNothing, kStart, kEnd };

  // A limit of 0 is none.  The ranks count as started until ExpectStart is called.
  TimeLimits(std::chrono::milliseconds start, std::chrono::milliseconds end, std::size_t ranks)
      : start_(start), end_(end), ranks_(ranks) {}

  // The programs of the ranks are about to start, as soon as there are resources for them.
  void ExpectStart(Clock::time_point now);
  // There are none yet, and there is no telling how long that takes.
  void AwaitResources();
  // So many ranks have started.
  void SetStarted(std::size_t ranks, Clock::time_point now);
  // Nobody will hear whether ranks have started.
  void GiveStartUp();
  // So many ranks have ended without a failure, or stopped early.
  void SetEnded(std::size_t ranks, Clock::time_point now);
  // The ranks could not go on until now.
  void BeginAnew(Clock::time_point now);

  bool is_starting() const { return is_starting_; }
  std::optional<Clock::time_point> deadline() const { return deadline_; }
  // The limit that is over.
  Over Look(Clock::time_point now) const;

 private:
  void Limit(std::chrono::milliseconds limit, Clock::time_point now);

  const std::chrono::milliseconds start_;
  const std::chrono::milliseconds end_;
  const std::size_t ranks_;
  bool is_starting_ = false;
  std::size_t ended_ = 0;
  std::optional<Clock::time_point> deadline_;
};

// When the ranks are to be told that the time of their Slurm job ends (--stop-before).  Slurm is
// asked once more just before, since the limit may have been extended meanwhile.
//
// For one thread, which never waits here for Slurm's answer.
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
