// SPDX-License-Identifier: Apache-2.0
//
// The supervisor of one job: what Supervise (supervisor.h) is made of.  What it does while the job
// runs is in supervisor.cc, how it ends a job in ending.cc.

#pragma once

#include <chrono>
#include <csignal>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "launcher/supervise/job_children.h"
#include "launcher/supervise/job_output.h"
#include "launcher/supervise/rank_event_parser.h"
#include "launcher/supervise/supervisor.h"
#include "launcher/supervise/time_limits.h"

namespace launcher {

class JobSupervisor {
 public:
  JobSupervisor(const SupervisorOptions& options, SignalRelay& signals)
      : options_(options),
        signals_(signals),
        output_(options.grace),
        children_(options),
        events_(options.event_key),
        to_ranks_(options.step_tools, children_, events_),
        nodes_of_job_(options.nodes_of_job),
        limits_(options.start_limit, options.end_limit, options.hosts.size()),
        time_limit_(options.time_limit),
        status_file_(options.status_file) {}

  void Start(const ChildCommand& command);
  JobResult Run();

 private:
  using Clock = std::chrono::steady_clock;
  using Event = RankEventParser::Event;
  enum class State { kRunning, kEnding, kKilling, kKilled };

  void WaitForEvent();
  void HandleSignals();
  void HandleStopRequest(int number);
  void RelayToRanks(int number);
  void RelayOutput();
  void RelayLastOutput();
  void LookAtHeartbeat();
  void PollTimeLimit();
  void LookAtNodesOfJob();
  void ReportStatus();
  void EndStepThatIsLeft();
  void HandleEvent(Event event);
  void RecordEnd(const JobChild& child, const siginfo_t& info);

  const LauncherTraits& launcher() const { return children_.launcher(); }
  bool CanReport() const { return !options_.event_key.empty() && !may_hide_events_; }
  bool IsBeforeStart() const;
  bool HasRunningRanks() const { return state_ == State::kRunning; }
  void GiveStartUp();
  void GiveEndUp();
  void ExpectEnd(std::chrono::milliseconds limit);
  void EndChildren();
  void EndRanks();
  void ReleaseLauncher();
  void AbandonLauncher(Clock::time_point now);
  void Advance();
  void Kill();

  JobResult Result();
  double SecondsSinceStart() const {
    return std::chrono::duration<double>(Clock::now() - start_).count();
  }

  const SupervisorOptions& options_;
  SignalRelay& signals_;
  JobOutput output_;
  JobChildren children_;
  RankEventParser events_;
  SignalsToRanks to_ranks_;
  NodesOfJob nodes_of_job_;
  TimeLimits limits_;
  TimeLimitWatcher time_limit_;
  StatusFile status_file_;
  std::map<int, int> exit_codes_;         // of children that are ranks and did not end well
  std::unique_ptr<Heartbeat> heartbeat_;  // while it is watched
  JobResult result_;
  State state_ = State::kRunning;
  bool may_hide_events_ = false;
  std::optional<Clock::time_point> deadline_;  // when the time for ending or killing is over
  std::set<int> ended_;                        // children that are ranks and have ended
  // Of a job that ddlrun has ended though no rank had failed.
  std::optional<int> own_exit_code_;
  bool has_lost_srun_ = false;             // a signal has ended srun
  bool has_arrived_ = false;               // scancel has ended, with which the step was killed
  bool were_notified_of_failure_ = false;  // the shims were
  bool has_released_ = false;              // srun or mpirun, since all ranks are gone
  std::optional<Clock::time_point> gone_until_;  // how long it may go on then
  bool is_abandoned_ = false;                    // since it did
  int interrupts_ = 0;
  const Clock::time_point start_ = Clock::now();
};

}  // namespace launcher
