// SPDX-License-Identifier: Apache-2.0
//
// Decides what follows when the ranks have ended: nothing, another start of the ranks in this
// allocation, or that the whole job is put into Slurm's queue again.  Pure; one object for one
// ddlrun.

#pragma once

#include <array>
#include <optional>
#include <string>

namespace launcher {

// After this many runs in a row without progress ddlrun gives up.
inline constexpr int kMaxRunsWithoutProgress = 3;
// A run that has lasted this long counts as progress, where no file tells it better.
inline constexpr double kSecondsOfProgress = 60;
// The pauses after the first and the second run without progress, in seconds: the reason of a
// failure may pass.
inline constexpr std::array<int, 2> kPauses = {2, 8};

struct RestartLimits {
  int restarts = 0;             // how often the ranks may be started again in this allocation
  std::optional<int> requeues;  // how often the job may be put into the queue again; empty: never
  int requeued = 0;             // how often it was already (SLURM_RESTART_COUNT)
};

// How the ranks ended.
struct RunOutcome {
  int exit_code = 0;
  double seconds = 0;           // how long they ran
  bool stop_requested = false;  // ddlrun was sent SIGTERM, SIGINT or SIGHUP
  bool has_lost_node = false;   // a node they ran on is down
  bool has_started = false;     // the programs of all ranks ran
  bool start_hung = false;      // some programs did not run when the time for that was over
  bool is_preempted = false;    // Slurm takes the nodes for another job
  bool has_nodes = true;        // enough nodes are left to start again
  int min_nodes = 0;            // so many are enough (--min-nodes); 0: that was not said
  int nodes_left = 0;           // where min_nodes was said
  // Whether the newest file of --progress-file became newer; empty without that option.
  std::optional<bool> file_moved;
  std::string checkpoints;   // the directory of that file where --progress-file is not given
  bool is_near_end = false;  // too near for --stop-before
  std::optional<double> seconds_left;  // until the time limit of the job; empty: it has none
};

struct Decision {
  enum class Next { kEnd, kRestart, kRequeue };
  Next next = Next::kEnd;
  int pause = 0;       // in seconds, before the next start
  std::string reason;  // a line for the user, without "ddlrun: "; "" where there is nothing to say
};

class RestartPolicy {
 public:
  explicit RestartPolicy(const RestartLimits& limits) : limits_(limits) {}

  // kEnd         after success; when a stop of ddlrun was requested; after a mistake that would
  // come again
  //              (exit codes 64, 65 and 78, and 69 unless all ranks had started or a node was
  //              lost); when no restart was asked for, or none is left; after
  //              kMaxRunsWithoutProgress runs in a row without progress
  // kRequeue     where that was asked for: after exit code 75, and when too few nodes, or less than
  //              kSecondsOfProgress of the job's time, are left; but not after a run without
  //              progress; after any end but a mistake of a job that Slurm preempts, which it would
  //              requeue itself if ddlrun did not end before
  // kRestart  after any other failure; also once after a start that hung, even if no restart was
  //              asked for
  Decision AfterRun(const RunOutcome& end);

  // How often the ranks were started again in this allocation.
  int restarts() const { return restarts_; }

 private:
  Decision Requeue(const RunOutcome& end, bool has_progress) const;

  RestartLimits limits_;
  int restarts_ = 0;
  int runs_without_progress_ = 0;
};

}  // namespace launcher
