// SPDX-License-Identifier: Apache-2.0
//
// The supervisor of one job: what Supervise (supervisor.h) is made of.  What it does while the job
// runs is in supervisor.cc, how it ends a job in ending.cc.

#pragma once

#include <chrono>
#include <csignal>
#include <map>
#include <optional>
#include <set>

#include "launcher/supervise/hang_query.h"
#include "launcher/supervise/job_children.h"
#include "launcher/supervise/job_output.h"
#include "launcher/supervise/rank_event_parser.h"
#include "launcher/supervise/supervisor.h"
#include "support/memory_kills.h"

namespace launcher {

class JobSupervisor final : private WatchedJob {
 public:
  JobSupervisor(const SupervisorOptions& options, SignalRelay& signals)
      : options_(options),
        signals_(signals),
        output_(options.grace),
        children_(options),
        events_(options.event_key),
        to_ranks_(options.step_tools, children_, events_),
        hang_query_(options.hang_query) {
    if (options.console.IsOn()) output_.ShowBy(options.console);
  }

  void Start(const ChildCommand& command);
  JobResult Run();

 private:
  using Event = RankEventParser::Event;
  enum class State { kRunning, kEnding, kKilling, kKilled };

  void WaitForEvent();
  void HandleSignals();
  void HandleStopRequest(int number);
  void RelayLastOutput();
  void EndStepThatIsLeft();
  void HandleEvent(Event event);
  void HandleAttachment();
  Sent SentToAll() const;
  void RecordEnd(const JobChild& child, const siginfo_t& info, Sent sent);

  // Of WatchedJob.
  Clock::time_point Now() const override { return Clock::now(); }
  const LauncherTraits& launcher() const override { return children_.launcher(); }
  const std::vector<std::string>& hosts() const override { return options_.hosts; }
  const std::set<int>& started() const override;
  const std::set<int>& ended() const override;
  const std::map<int, int>& exit_codes() const override;
  std::map<int, pid_t> Processes() const override { return children_.Processes(); }
  bool IsRunning() const override { return state_ == State::kRunning && !children_.AllEnded(); }
  bool IsStopRequested() const override { return result_.stop_requested; }
  bool IsBeforeStart() const override;
  bool MayHaveStartedAny() const override { return children_.MayHaveStartedAny(); }
  bool AreRanksHeld() const override { return output_.IsHeld() || was_attached_; }
  bool IsOutputClosed() const override { return output_.IsClosed(); }
  void AskWatchers(JobStatus* status) const override;
  void SendToRanks(int signal) override;
  void SetAttached(int rank, bool is_attached) override;
  void Say(const std::string& line) override { output_.Say(line); }
  void AddNote(std::string note) override { result_.notes.push_back(std::move(note)); }
  void End(const OwnEnd& end) override { EndFor(end, /*is_kill=*/false); }
  void Kill(const OwnEnd& end) override { EndFor(end, /*is_kill=*/true); }

  bool CanReport() const { return !options_.event_key.empty() && !may_hide_events_; }
  bool HasRunningRanks() const { return state_ == State::kRunning; }
  void EndFor(const OwnEnd& end, bool is_kill);
  void AdvanceHangQuery();
  void ExpectEnd(std::chrono::milliseconds limit);
  void EndChildren();
  void EndRanks();
  void NotifyOfFailure();
  void ReleaseLauncher();
  void AbandonLauncher(Clock::time_point now);
  void Advance();
  void KillJob();

  JobResult Result();
  double SecondsSinceStart() const {
    return std::chrono::duration<double>(Clock::now() - start_).count();
  }

  const SupervisorOptions& options_;
  SignalRelay& signals_;
  JobOutput output_;
  JobChildren children_;
  const support::MemoryKills kills_before_ = support::ReadMemoryKills("");
  RankEventParser events_;
  SignalsToRanks to_ranks_;
  HangQuery hang_query_;
  std::set<int> started_;          // children that are ranks
  std::set<int> ended_;            // of these: that have ended
  std::map<int, int> exit_codes_;  // and did not end well
  std::set<int> attached_;         // to which somebody is attached
  bool was_attached_ = false;      // to any rank
  bool has_said_attached_ = false;
  JobResult result_;
  State state_ = State::kRunning;
  bool may_hide_events_ = false;
  std::optional<Clock::time_point> deadline_;  // when the time for ending or killing is over
  bool has_lost_srun_ = false;                 // a signal has ended srun
  bool has_arrived_ = false;                   // scancel has ended, with which the step was killed
  bool were_notified_of_failure_ = false;      // the shims were
  bool awaits_starts_ = false;                 // until when they cannot be
  bool was_killed_before_start_ = false;       // since a stop was requested then
  bool has_released_ = false;                  // srun or mpirun, since all ranks are gone
  std::optional<Clock::time_point> gone_until_;  // how long it may go on then
  bool is_abandoned_ = false;                    // since it did
  int interrupts_ = 0;
  const Clock::time_point start_ = Clock::now();
};

}  // namespace launcher
