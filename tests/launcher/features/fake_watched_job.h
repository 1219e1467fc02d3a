// SPDX-License-Identifier: Apache-2.0
//
// A job for the watchers: the test says what it does, and sees what they do with it.

#pragma once

#include <optional>

#include "launcher/protocol/launchers.h"
#include "launcher/supervise/job_watcher.h"

namespace launcher {

class FakeWatchedJob final : public WatchedJob {
 public:
  explicit FakeWatchedJob(std::vector<std::string> rank_hosts = {"n1", "n2"},
                          const char* launcher = "srun")
      : hosts_(std::move(rank_hosts)), launcher_(&TraitsOf(launcher)) {}

  Clock::time_point Now() const override { return now; }
  const LauncherTraits& launcher() const override { return *launcher_; }
  const std::vector<std::string>& hosts() const override { return hosts_; }
  const std::set<int>& started() const override { return started_ranks; }
  const std::set<int>& ended() const override { return ended_ranks; }
  const std::map<int, int>& exit_codes() const override { return codes; }
  std::map<int, pid_t> Processes() const override { return {}; }
  bool IsRunning() const override { return is_running && !end; }
  bool IsStopRequested() const override { return is_stop_requested; }
  bool IsBeforeStart() const override { return started_ranks.empty(); }
  bool MayHaveStartedAny() const override { return may_have_started_any; }
  bool AreRanksHeld() const override { return are_ranks_held; }
  bool IsOutputClosed() const override { return false; }
  void AskWatchers(JobStatus* status) const override { *status = heartbeats; }
  void SendToRanks(int signal) override { signals.push_back(signal); }
  void SetAttached(int /*rank*/, bool /*is_attached*/) override {}
  void Say(const std::string& /*line*/) override {}
  void AddNote(std::string note) override { notes.push_back(std::move(note)); }
  void End(const OwnEnd& own_end) override { end = own_end; }
  void Kill(const OwnEnd& own_end) override {
    end = own_end;
    was_killed = true;
  }

  // Begins at `ms`, and lets the watcher see what happens then: "" or how it ends the job.
  std::string At(int ms, JobWatcher& watcher) {
    now = Clock::time_point(std::chrono::milliseconds(ms));
    watcher.Poll(*this);
    return end ? end->text : "";
  }
  // The same, after something was reported.
  std::string At(int ms, JobWatcher& watcher, JobWatcher::Event event) {
    now = Clock::time_point(std::chrono::milliseconds(ms));
    watcher.OnEvent(*this, event);
    return At(ms, watcher);
  }

  Clock::time_point now;
  std::set<int> started_ranks, ended_ranks;
  std::map<int, int> codes;
  bool is_running = true, is_stop_requested = false, are_ranks_held = false;
  bool may_have_started_any = true;
  JobStatus heartbeats;  // what its watchers know
  std::vector<int> signals;
  std::vector<std::string> notes;
  std::optional<OwnEnd> end;
  bool was_killed = false;

 private:
  const std::vector<std::string> hosts_;
  const LauncherTraits* launcher_;
};

}  // namespace launcher
