// SPDX-License-Identifier: Apache-2.0
//
// The children of a job: its ranks, or the srun or mpirun that starts all of them.

#pragma once

#include <sys/types.h>

#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/launch/launcher.h"
#include "launcher/shim/stopped_rank_monitor.h"
#include "launcher/supervise/deadlines.h"
#include "launcher/supervise/job_output.h"
#include "launcher/supervise/orphans.h"
#include "launcher/supervise/supervisor.h"
#include "launcher/supervise/tail.h"
#include "launcher/system/child_process.h"

namespace launcher {

struct JobChild {
  int rank = -1;
  pid_t pid = 0;
  bool has_ended = false;
  Tail tail;                              // the last lines, of a rank only
  std::map<int, std::string> unfinished;  // by stream: the beginning of a line
  support::Descriptor log;
  StoppedRankMonitor stopped;  // of a rank only

  // What a rank has written to `stream`, with or without its line ends.  Lines of standard error go
  // to `shown`, too.
  void AddToTail(int stream, std::string_view text, Tail* shown);
};

class JobChildren {
 public:
  explicit JobChildren(const SupervisorOptions& options) : options_(options) {}
  // Ends the children that are left, which only happens after an exception: srun and mpirun get
  // SIGTERM, at which they end their ranks, and SIGKILL, which would leave those alone, only where
  // they take longer than kGraceOfOthers.
  ~JobChildren();
  JobChildren(const JobChildren&) = delete;
  JobChildren& operator=(const JobChildren&) = delete;

  // Starts a child, whose output goes to `output`.  `on_launcher_line` gets each line that srun or
  // mpirun writes on standard error, without its line end.  It returns what the user sees in place
  // of the line, with a line end, or nullopt for the line itself; so does an exception, since no
  // line that somebody prints may end the job.  Throws as StartChild does, and
  // LaunchError(EX_OSERR) for a log file that cannot be written.
  void Start(const ChildCommand& command, const sigset_t& signal_mask, JobOutput* output,
             const std::function<std::optional<std::string>(std::string_view)>& on_launcher_line);

  const LauncherTraits& launcher() const { return *launcher_; }  // of all children
  bool AllEnded() const;
  // The last lines of a rank that is a child, in case it failed, and others have come after them.
  void AddLastLines(RankFailure* failure) const;

  // Whether a child has started processes that are still there; true where the kernel does not
  // tell.
  bool MayHaveStartedAny() const;

  // Sends a signal to the process group of each child that has not ended.
  void Signal(int number) const;
  // Passes on a signal that ddlrun was sent, or the one that the launcher wants instead of it.
  void RelaySignal(int number) const;
  // Reaps the children that have ended, kills what is left of their process groups, and calls
  // `on_end` for each.  `others` are children of this process too (0: none), but none of these.
  void Reap(std::vector<pid_t> others,
            const std::function<void(const JobChild&, const siginfo_t&)>& on_end);
  // Looks, once a second, for ranks that are stopped, and says of each to `output` that it has been
  // for long.  Once they were told to stop, and have had their grace to go on, what is stopped is
  // killed.  Of srun and mpirun the shims do this.
  void LookForStopped(bool are_requested_to_stop, JobOutput* output);
  // When that is to be called next; nullopt: never.
  Deadline look_at() const;
  // Ends what a launcher with daemons, or ranks that are children, have left behind.  To be called
  // when all have ended.  Returns notes for the user on what cannot be ended.
  std::vector<std::string> EndOrphans() const;

 private:
  const SupervisorOptions& options_;
  const LauncherTraits* launcher_ = nullptr;
  std::vector<std::unique_ptr<JobChild>> children_;
  std::unique_ptr<Orphans> orphans_;  // null for a step, whose shims end what is left
  Tail shown_;                        // lines of standard error of all ranks that are children
  std::chrono::steady_clock::time_point look_at_ = std::chrono::steady_clock::now();
};

// How long srun and mpirun may take to end after SIGTERM; they end their ranks within seconds.
inline constexpr std::chrono::milliseconds kGraceOfOthers{8000};

}  // namespace launcher
