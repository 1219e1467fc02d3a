// SPDX-License-Identifier: Apache-2.0
//
// Records what a run costs (launcher/cost): when its ranks start, run, fail and are gone, and when
// they make progress.  Keeps the file of `ddlctl history` in the directory of --log-dir, and that
// for Prometheus in the one of --metrics-dir; where only the latter is given, both are there.
//
// Threads: one of its own looks at the progress file and writes, while ranks run, so that a file
// system that hangs holds up nobody.  All calls are from one other thread.

#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "launcher/cost/launch_record.h"
#include "launcher/cost/run_cost.h"
#include "launcher/features/feature.h"

namespace launcher {

extern const Feature kRunRecorder;

// When a file has changed, by a monotonic clock, though its times are those of a file server.
// Pure.
class ChangeTracker {
 public:
  using FileTime = std::filesystem::file_time_type;

  // The file has the time `time` (nullopt: it is not there, or nobody can tell) when this machine's
  // clock for files says `file_now`, and the monotonic one `now`, in seconds.
  void Look(std::optional<FileTime> time, FileTime file_now, double now);
  // When it has changed last, since the first look: by its own time, where that is one between two
  // looks, else when the change was seen.  nullopt: not yet.
  std::optional<double> changed() const { return changed_; }

 private:
  std::optional<double> looked_;
  std::optional<FileTime> time_;
  std::optional<double> changed_;
};

struct RunRecorderOptions {
  LaunchRecord head;               // all but exit code and cost
  std::filesystem::path run_file;  // "": none
  std::filesystem::path metrics;   // "": none
  ProgressSource source = ProgressSource::kNone;
  // When the program has made progress that a restart keeps; null where nothing tells.
  std::function<std::optional<std::filesystem::file_time_type>()> progress_time;
};

// The files, and whether there are heartbeats, as options and environment have them; the start is
// now.  Throws LaunchError(EX_OSERR) where the directory of --metrics-dir cannot be made.
RunRecorderOptions RecorderOptionsOf(const Options& options, const Environment& environment);

class RunRecorder {
 public:
  using Clock = std::chrono::steady_clock;

  // `begin`: when ddlrun was started, to which the start is set back.  Writes the file for
  // Prometheus, so that one that cannot be written is known before ranks start: throws
  // LaunchError(EX_OSERR).
  RunRecorder(RunRecorderOptions options, Clock::time_point begin);

  // Of the next start of the ranks: it begins, all programs run, a failure was noticed (`silence`:
  // seconds since the last heartbeat of the slowest rank), all ranks are gone.  After the first
  // call for a start the same one changes nothing.
  void OnLaunch();
  void OnRunning();
  void OnNoticed(std::optional<double> silence);
  // `joules`: what the GPUs took in this start; `lacks_energy`: without some nodes.
  void OnGone(int exit_code, std::optional<double> joules = std::nullopt,
              bool lacks_energy = false);
  // ddlrun ends.  Why the last writing has failed, a line for the user; "" where it has not.
  std::string OnEnd(int exit_code);

  RunCost Cost() const;  // until now
  bool has_noticed() const;

 private:
  struct Shared;

  void StartThread(bool is_last);
  void StopThread();

  std::shared_ptr<Shared> shared_;
};

// Tells the recorder what the supervisor sees.
class RunRecorderWatcher : public JobWatcher {
 public:
  explicit RunRecorderWatcher(RunRecorder& recorder) : recorder_(recorder) {}

  void OnLaunch(WatchedJob& job) override;
  void OnEvent(WatchedJob& job, Event /*event*/) override { Poll(job); }
  void Poll(WatchedJob& job) override;
  void AddTo(JobStatus* status) const override { status->cost = recorder_.Cost(); }

 private:
  RunRecorder& recorder_;
};

}  // namespace launcher
