// SPDX-License-Identifier: Apache-2.0
//
// What watches a job while it runs: a limit for its start, a heartbeat, a status file.  Each is a
// class of its own (launcher/features), which the supervisor calls at the points below.

#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "launcher/launch/launcher.h"
#include "launcher/protocol/job_status.h"
#include "launcher/supervise/deadline.h"
#include "launcher/supervise/job_result.h"
#include "launcher/supervise/rank_event_parser.h"

namespace launcher {

// A running job as its watchers see it, and what they may do with it.
class WatchedJob {
 public:
  using Clock = std::chrono::steady_clock;

  virtual Clock::time_point Now() const = 0;
  virtual const LauncherTraits& launcher() const = 0;
  virtual const std::vector<std::string>& hosts() const = 0;  // of each rank
  // Ranks whose program runs, or has run; has ended; has ended with another exit code than 0.
  virtual const std::set<int>& started() const = 0;
  virtual const std::set<int>& ended() const = 0;
  virtual const std::map<int, int>& exit_codes() const = 0;
  // Of ranks that are children of this process and run.
  virtual std::map<int, pid_t> Processes() const = 0;

  // Whether the ranks run, and have not been told to end by ddlrun.
  virtual bool IsRunning() const = 0;
  // Whether somebody has asked ddlrun to stop: ranks that end then may take their time.
  virtual bool IsStopRequested() const = 0;
  // Whether srun or mpirun has not started the program of any rank so far.
  virtual bool IsBeforeStart() const = 0;
  // Whether srun or mpirun may have started processes.
  virtual bool MayHaveStartedAny() const = 0;
  // Whether ranks wait for a reader of their output, or somebody is attached to one, so that they
  // cannot go on; whether there is no reader any more.
  virtual bool AreRanksHeld() const = 0;
  virtual bool IsOutputClosed() const = 0;

  // Adds what each watcher knows of the ranks.
  virtual void AskWatchers(JobStatus* status) const = 0;
  virtual void SendToRanks(int signal) = 0;
  // Of a rank that is a child: whether somebody is attached to it.
  virtual void SetAttached(int rank, bool is_attached) = 0;
  virtual void Say(const std::string& line) = 0;  // to the user, at once
  virtual void AddNote(std::string note) = 0;     // for the user, at the end
  // Ends the job, of which no rank has failed: the ranks get SIGTERM, and their grace.
  virtual void End(const OwnEnd& end) = 0;
  // The same without any grace.
  virtual void Kill(const OwnEnd& end) = 0;

 protected:
  ~WatchedJob() = default;
};

// All calls are from one thread; none waits.  A watcher is for one run of the ranks.
class JobWatcher {
 public:
  using Event = RankEventParser::Event;

  JobWatcher() = default;
  virtual ~JobWatcher() = default;
  JobWatcher(const JobWatcher&) = delete;
  JobWatcher& operator=(const JobWatcher&) = delete;

  // The ranks, or the srun or mpirun that is to start them, have been started.
  virtual void OnLaunch(WatchedJob& /*job*/) {}
  // Something was reported of a rank, or a rank that is a child has ended (kEnd).
  virtual void OnEvent(WatchedJob& /*job*/, Event /*event*/) {}
  // The job was stopped (Ctrl-Z) until now.
  virtual void OnContinue(WatchedJob& /*job*/) {}
  // Somebody was attached to a rank until now.
  virtual void OnDetach(WatchedJob& job) { OnContinue(job); }
  // Called whenever something has happened, and at the deadline, while any child is left.
  virtual void Poll(WatchedJob& job) = 0;
  // When Poll is to be called though nothing has happened.
  virtual Deadline deadline() const { return std::nullopt; }
  // A descriptor that becomes readable when Poll is to be called; -1: none.
  virtual int fd() const { return -1; }
  // A process of the watcher's own, which is a child of this one and no rank; 0: none.
  virtual pid_t child() const { return 0; }
  // Ends it.
  virtual void EndChild() {}
  // Adds what it knows of the ranks.
  virtual void AddTo(JobStatus* /*status*/) const {}
  // All children have ended; `result` has what was reported of them.  May wait, for seconds.
  virtual void OnEnd(const WatchedJob& /*job*/, JobResult* /*result*/) {}
};

}  // namespace launcher
