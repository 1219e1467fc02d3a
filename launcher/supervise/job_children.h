// SPDX-License-Identifier: Apache-2.0
//
// The children of a job: its ranks, or the srun or mpirun that starts all of them.

#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/launch/launcher.h"
#include "launcher/supervise/cleanup_process.h"
#include "launcher/supervise/deadline.h"
#include "launcher/supervise/failure_report.h"
#include "launcher/supervise/job_output.h"
#include "launcher/supervise/rank_event_parser.h"
#include "launcher/supervise/step_tools.h"
#include "launcher/supervise/supervisor.h"
#include "launcher/system/child_process.h"

namespace launcher {

struct JobChild {
  int rank = -1;
  pid_t pid = 0;
  bool has_ended = false;
  Tail tail;                              // the last lines, of a rank only
  std::map<int, std::string> unfinished;  // by stream: the beginning of a line
  support::Descriptor log;

  // What a rank has written to `stream`, with or without its line ends.  Lines of standard error go
  // to `shown`, too, which may be null.
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
  // mpirun writes on standard error, without its line end; one in a frame of a rank as a marked one
  // (EmitOutputMark).  It returns what the user sees in place
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
  // Of ranks that are children and have not ended.
  std::map<int, pid_t> Processes() const;

  // Sends a signal to the process group of each child that has not ended.
  void Signal(int number) const;
  // Passes on a signal that ddlrun was sent, or the one that the launcher wants instead of it.
  void RelaySignal(int number) const;
  // Reaps the children that have ended by now, kills what is left of their process groups, and
  // calls `on_end` for each.  What that sends to the others has not ended any of them.  `others`
  // are children of this process too (0: none), but none of these.
  void Reap(std::vector<pid_t> others,
            const std::function<void(const JobChild&, const siginfo_t&)>& on_end);
  // Ends what a launcher with daemons, or ranks that are children, have left behind.  To be called
  // when all have ended.  Returns notes for the user on what cannot be ended.
  std::vector<std::string> EndOrphans() const;

 private:
  using OnLine = std::function<std::optional<std::string>(std::string_view)>;

  void AddLauncherOutput(ChildProcess* process, JobOutput* output, const OnLine& on_launcher_line);
  void AddRankOutput(JobChild* child, ChildProcess* process, JobOutput* output);
  // Shows what is in a frame: true, with what is in front of it in `text`.
  bool ShowFrame(int to, std::string_view* text, JobOutput* output, const OnLine& on_line);

  const SupervisorOptions& options_;
  const LauncherTraits* launcher_ = nullptr;
  std::set<int> in_line_;  // ranks, in a line of whose standard error a frame ended
  std::vector<std::unique_ptr<JobChild>> children_;
  std::unique_ptr<Orphans> orphans_;  // null for a step, whose shims end what is left
  Tail shown_;                        // lines of standard error of all ranks that are children
};

// How long srun and mpirun may take to end after SIGTERM; they end their ranks within seconds.
inline constexpr std::chrono::milliseconds kGraceOfOthers{8000};

// How signals travel to the ranks of a job: through the children, or for a step of srun by Slurm.
// For single-threaded callers.
class SignalsToRanks {
 public:
  // `children` and `reports`, which name the step, must outlive this object.
  SignalsToRanks(const StepTools& tools, const JobChildren& children,
                 const RankEventParser& reports)
      : tools_(tools), step_signals_(tools), children_(children), events_(reports) {}

  // To every rank.
  void Relay(int number);
  // Tells every shim and rank that a peer has failed (kPeerFailedSignal), and under mpirun, the
  // second time, that all ranks are gone.  False where that cannot be told.
  bool NotifyOfFailure();
  // Stops every rank: they get SIGSTOP.
  void Stop();
  // Whether all ranks are stopped since Stop was called, or Slurm could not do it.  True once.
  bool TakeStopped();
  // Kills the step of srun.  False where its name is not known, or there is no scancel.
  bool KillStep();
  bool has_killed_step() const { return has_killed_step_; }
  // Whether all that was asked of Slurm is done, or was refused.
  bool HaveArrived() { return step_signals_.HaveArrived(); }
  // Whether an order to stop was lost on its way since this was last asked.
  bool TakeLostOrder();
  // When TakeStopped and TakeLostOrder are to be asked at the latest.
  Deadline deadline() const { return step_signals_.deadline(); }
  // Waits until a step that was killed is gone.  False when it is still there after `limit`.
  bool WaitUntilKilled(std::chrono::milliseconds limit) const;

 private:
  bool SendBySlurm(int number);

  const StepTools& tools_;
  StepSignals step_signals_;
  const JobChildren& children_;
  const RankEventParser& events_;
  bool is_stopping_ = false;
  bool has_lost_stop_ = false;
  bool has_killed_step_ = false;
};

}  // namespace launcher
