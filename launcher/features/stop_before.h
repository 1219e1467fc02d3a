// SPDX-License-Identifier: Apache-2.0
//
// --stop-before: the ranks get a signal before the time limit of their Slurm job, so that they can
// write a checkpoint.  Slurm is asked once more just before, since the limit may have been extended
// meanwhile.

#pragma once

#include <csignal>
#include <functional>

#include "launcher/features/feature.h"
#include "launcher/system/child_process.h"

namespace launcher {

extern const Feature kStopBefore;

struct StopBeforeOptions {
  std::chrono::steady_clock::time_point end;  // of the job, as far as it is known at the start
  std::chrono::milliseconds margin{0};        // before the end, when the ranks are told
  int signal = SIGUSR1;                       // by this one, or SIGUSR2
  // A command that prints what Slurm says about the job; its first word is a path.  Empty: nobody
  // is asked.
  std::vector<std::string> question;
  Environment environment;  // of that command
  // Reads what it has printed: seconds until the end, infinity without a limit; nullopt for any
  // other text.
  std::function<std::optional<double>(const std::string& text)> seconds_left;
};

// The end of the job from its environment.  Asks scontrol, and waits for the answer, where that has
// none, or one that is too near.  Throws LaunchError(EX_CONFIG) where the end is not known or too
// near, but not for a restart: then the limit may have been taken away (nullopt) or be extended
// yet.
std::optional<StopBeforeOptions> StopBeforeTimeLimit(const Options& options,
                                                     const Environment& environment,
                                                     bool is_restart);

class StopBefore : public JobWatcher {
 public:
  using Clock = std::chrono::steady_clock;
  // How long before the ranks are to be told Slurm is asked; it has as long for its answer.
  static constexpr std::chrono::milliseconds kAhead{5000};
  // By how much an end must be later to be another one: Slurm counts in seconds.
  static constexpr std::chrono::milliseconds kSlack{2000};

  explicit StopBefore(StopBeforeOptions options)
      : options_(std::move(options)), end_(options_.end), notify_at_(*end_ - options_.margin) {}

  // Tells the ranks once, unless they are ending.  An end that is near or over, as it may be after
  // a restart, is asked for before.
  void Poll(WatchedJob& job) override;
  Deadline deadline() const override;
  pid_t child() const override { return question_ != nullptr ? question_->pid() : 0; }
  void EndChild() override { question_.reset(); }
  void AddTo(JobStatus* status) const override;
  void OnEnd(const WatchedJob& job, JobResult* result) override;

  // The end as it is known now; nullopt: there is none.
  Deadline end() const { return end_; }

 private:
  bool IsTime(Clock::time_point now);
  void Ask(Clock::time_point now);
  void TakeAnswer();

  const StopBeforeOptions options_;
  Deadline end_;
  Deadline notify_at_;
  bool has_notified_ = false;
  bool has_queried_ = false;
  Clock::time_point queried_at_;
  Clock::time_point answer_until_;
  std::unique_ptr<CommandOutput> question_;  // while it runs
};

}  // namespace launcher
