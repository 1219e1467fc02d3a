// SPDX-License-Identifier: Apache-2.0
//
// Keeps the file that says how the job goes (job_status.h).
//
// Threads: a thread of its own writes, so that a file system that hangs holds up nobody.  All calls
// are from one other thread.

#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "launcher/protocol/job_status.h"

namespace launcher {

struct StatusFileOptions {
  std::string path;  // in a private directory; "": there is no file
  JobStatus head;    // what does not change; all but `written` and the ranks' states
};

// Sets the states of the ranks by who has `started` (null: all), who has ended, and with what if
// not with 0.  Pure.
void SetRankStates(const std::set<int>* started, const std::set<int>& ended,
                   const std::map<int, int>& exit_codes, JobStatus* status);

class StatusFile {
 public:
  using Clock = std::chrono::steady_clock;

  // Without threads left there is no file: a job does not end for that.
  explicit StatusFile(const StatusFileOptions& options);
  // From then on nothing is written, so that the directory can be removed; where the file system
  // hangs it waits for 2 s at most.
  ~StatusFile();
  StatusFile(const StatusFile&) = delete;
  StatusFile& operator=(const StatusFile&) = delete;

  // When Write is to be called the next time; nullopt: never.
  std::optional<Clock::time_point> deadline() const { return next_; }
  // What the file says from now on, as soon as it can be written.  One that cannot is left as it
  // is.
  void Write(JobStatus status);

 private:
  struct Shared;

  std::optional<Clock::time_point> next_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace launcher
