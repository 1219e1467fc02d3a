// SPDX-License-Identifier: Apache-2.0
//
// What follows when the ranks have ended: nothing, the same ranks again in this allocation, or the
// whole job again through Slurm's queue.  Pure; one object for one ddlrun.

#pragma once

#include <array>
#include <optional>
#include <string>

namespace launcher {

// Runs in a row that made no progress, after which ddlrun gives up.
inline constexpr int kMostRunsWithoutProgress = 3;
// A run that lasted so long counts as progress where no file tells better.
inline constexpr double kSecondsOfProgress = 60;
// Pauses after the first and the second run without progress: what made it fail may pass.
inline constexpr std::array<int, 2> kPauses = {2, 8};

struct RestartLimits {
  int restarts = 0;             // of the ranks, in this allocation
  std::optional<int> requeues;  // of the whole job, 0 or more; empty: it is not to be requeued
  int requeued = 0;             // as often it was already (SLURM_RESTART_COUNT)
};

// How the ranks ended.
struct RunEnd {
  int exit_code = 0;
  double seconds = 0;          // how long they ran
  bool told_to_stop = false;   // ddlrun was sent SIGTERM, SIGINT or SIGHUP
  bool has_lost_node = false;  // a node they ran on is down
  bool has_started = false;    // the programs of all ranks ran
  bool start_hung = false;     // some did not run when the time for that was over
  bool has_nodes = true;       // enough nodes are left to start again
  // Whether the newest file of --progress-file became newer; empty without that option.
  std::optional<bool> file_moved;
  std::string checkpoints;             // that file, where nobody has named it
  std::optional<double> seconds_left;  // until the job's time limit; empty: it has none
};

struct Decision {
  enum class Next { kEnd, kStartAgain, kRequeue };
  Next next = Next::kEnd;
  int pause = 0;       // in seconds, before the next start
  std::string reason;  // a part of a line for the user; "" where there is nothing to say
};

class RestartPolicy {
 public:
  explicit RestartPolicy(const RestartLimits& limits) : limits_(limits) {}

  // kEnd         after success; when told to stop; for the exit codes of a mistake that the next
  //              start would make again (64, 65, 78; 69 before all ranks had started and where no
  //              node was lost); when nothing was asked for or it is used up; without progress.
  // kRequeue     after 75, and when too few nodes or less than kSecondsOfProgress of the job's time
  //              are left; not after a run without progress.
  // kStartAgain  after any other failure; once after a start that hung, also when nothing was asked
  //              for; kMostRunsWithoutProgress runs in a row without progress
  //              are the last.
  Decision AfterRun(const RunEnd& end);

  // Times the ranks were started again in this allocation.
  int restarts() const { return restarts_; }

 private:
  Decision Requeue(const RunEnd& end, bool has_progress) const;

  RestartLimits limits_;
  int restarts_ = 0;
  int runs_without_progress_ = 0;
};

}  // namespace launcher
