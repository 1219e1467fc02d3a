// SPDX-License-Identifier: Apache-2.0
//
// Finds a program that hangs, by the files that its ranks touch as they make progress.
//
// Only changes of a file's time count, since the clocks of file servers differ.  Time in which this
// process was stopped, as the job may have been, does not count.  Where the file system does not
// answer nothing is said: the ranks may be well.
//
// Threads: a thread of its own looks at the files.  All calls are from one other thread.

#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launcher/protocol/job_status.h"

namespace launcher {

// `pattern` for one rank, whose number stands instead of kRankMark (rank_variables.h).  Pure.
std::string HeartbeatFile(const std::string& pattern, int rank);

struct HeartbeatOptions {
  std::string pattern;                      // an absolute path, with or without kRankMark
  std::chrono::milliseconds limit{300000};  // how long a file may stay as it is
  int ranks = 1;
};

class Heartbeat {
 public:
  // Throws LaunchError(EX_OSERR) where there are no descriptors or threads left.
  explicit Heartbeat(const HeartbeatOptions& options);
  // Returns at once, also where a file system hangs.
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  // Becomes readable when some file is late, until TakeLate is called.
  int fd() const;
  // Who is late, in words: "rank 3 on n2 has not touched /scratch/beat.3 for 60 s"; nullopt: nobody
  // is.  `hosts` are those of the ranks; those in `ended` touch their files no more.
  std::optional<std::string> TakeLate(const std::vector<std::string>& hosts,
                                      const std::set<int>& ended);
  // Sets for how long each rank has not touched its file, if it has one of its own.
  void SetSilences(JobStatus* status) const;

 private:
  struct Shared;

  const HeartbeatOptions options_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace launcher
