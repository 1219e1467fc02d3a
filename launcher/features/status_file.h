// SPDX-License-Identifier: Apache-2.0
//
// Keeps the file that says how the job goes (job_status.h).
//
// Threads: a thread of its own writes, so that a file system that hangs holds up nobody.  All calls
// are from one other thread.

#pragma once

#include "launcher/features/feature.h"
#include "launcher/protocol/job_status.h"

namespace launcher {

extern const Feature kStatusFile;

struct StatusFileOptions {
  std::string path;  // in a private directory; "": there is no file
  JobStatus head;    // what does not change; all but the times and the ranks' states
};

// Sets the states of the ranks by who has started, who has ended, and with what if not with 0.
// Pure.
void SetRankStates(const std::set<int>& started, const std::set<int>& ended,
                   const std::map<int, int>& exit_codes, JobStatus* status);

class StatusFile : public JobWatcher {
 public:
  using Clock = WatchedJob::Clock;

  // Without threads left there is no file: a job does not end for that.
  explicit StatusFile(StatusFileOptions options);
  // From then on nothing is written, so that the directory can be removed; where the file system
  // hangs it waits for 2 s at most.
  ~StatusFile() override;

  void OnLaunch(WatchedJob& job) override;
  // Writes from time to time what is known, with what the other watchers know.
  void Poll(WatchedJob& job) override;
  Deadline deadline() const override { return next_; }
  // What the file says from now on, as soon as it can be written.  One that cannot is left as it
  // is.
  void Write(JobStatus status);

 private:
  struct Shared;

  StatusFileOptions options_;
  Deadline next_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace launcher
