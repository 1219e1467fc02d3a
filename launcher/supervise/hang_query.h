// SPDX-License-Identifier: Apache-2.0
//
// What is asked before a job that hangs is ended: which rank holds it up.  Only while the ranks
// still hang can that be seen.

#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/base/environment.h"
#include "launcher/supervise/deadline.h"
#include "launcher/supervise/job_result.h"
#include "launcher/system/child_process.h"

namespace launcher {

// A command whose last line is the answer, as that of `ddlctl why` is.
struct HangQueryOptions {
  std::vector<std::string> command;  // its first word is a path; empty: nobody is asked
  Environment environment;
  std::chrono::milliseconds limit{15000};
};

class HangQuery {
 public:
  using Clock = std::chrono::steady_clock;

  // An end of the job that waits for the answer.
  struct Postponed {
    OwnEnd end;
    bool is_kill;
  };

  explicit HangQuery(const HangQueryOptions& options) : options_(options) {}

  // Asks, and returns at once; false: nobody can be asked.  REQUIRES: !IsPending().
  bool Begin(const OwnEnd& end, bool is_kill, Clock::time_point now);
  bool IsPending() const { return command_ != nullptr; }
  // The end, once the answer is there, which its text then closes with, or the time for it is over.
  // When the command ends, SIGCHLD comes.
  std::optional<Postponed> Take(Clock::time_point now);
  void Cancel() { command_.reset(); }

  Deadline deadline() const { return IsPending() ? Deadline(until_) : std::nullopt; }
  pid_t child() const { return IsPending() ? command_->pid() : 0; }

 private:
  const HangQueryOptions& options_;
  std::unique_ptr<CommandOutput> command_;  // while it is pending
  Postponed postponed_;
  Clock::time_point until_;
};

}  // namespace launcher
