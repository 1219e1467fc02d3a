// SPDX-License-Identifier: Apache-2.0
//
// --heartbeat and --hang-after: a program that hangs is found by the files that its ranks touch as
// they make progress.
//
// Only changes of a file's time count, since the clocks of file servers differ.  Time in which this
// process was stopped, as the job may have been, does not count.  Where the file system does not
// answer nothing is said: the ranks may be well.  Where it is slow the limit stays as it is, since
// thousands of files are looked at by several threads.
//
// Threads: one of its own counts the time, up to 16 others look at the files: one, and twice as
// many each time that these take too long.  All calls are from one other thread.

#pragma once

#include <cstdint>
#include <functional>

#include "launcher/features/feature.h"

namespace launcher {

extern const Feature kHeartbeat;

// How much of the time counts: not that in which this process was stopped, as the ranks may have
// been, or in which the file system did not answer.  Pure: Count is called every `tick`
// seconds or more often unless this process is stopped.
class HeartbeatClock {
 public:
  explicit HeartbeatClock(double tick) : limit_(2 * tick) {}

  // So many seconds have passed since the last call; `no_answers`: and the file system, which was
  // asked for the files, has not answered for any of them.  How many seconds count, now that it
  // answers or is not asked; at most two ticks for a time in which this process was stopped or
  // waited for the file system.
  double Count(double seconds, bool no_answers);

 private:
  const double limit_;
  double waiting_ = 0;  // for the file system, until now
};

// Which of the files that ranks touch has not changed for too long.  Pure: what is seen is told.
class HeartbeatMonitor {
 public:
  // `limit` is how long a file may stay as it is, in seconds.  Until it changes for the first time
  // it has ten times as long: the program loads its libraries and data.
  HeartbeatMonitor(int files, double limit)
      : limit_(limit), files_(static_cast<std::size_t>(files)) {}

  // So much time has passed.
  void Pass(double seconds) { elapsed_ += seconds; }
  // What has passed in all.
  double elapsed() const { return elapsed_; }
  // File `index` was last changed at `time`, in ns by whatever clock; nullopt: it is not there, or
  // nobody can tell.  It was looked for when elapsed() was `as_of`.
  void Look(int index, std::optional<std::int64_t> time, double as_of);
  // File `index` need not change any more.
  void Forget(int index);
  // The files that have not changed for too long, the longest first.
  std::vector<int> Late() const;
  // For how long a file had not changed, in seconds, when it was looked at last.
  double SilenceOf(int index) const { return files_.at(static_cast<std::size_t>(index)).silence; }

 private:
  struct File {
    bool is_known = false;
    bool is_forgotten = false;
    bool has_changed = false;
    std::optional<std::int64_t> time;
    double changed = 0;  // what had passed when its change was seen, or 0
    double silence = 0;  // in seconds
  };

  double BoundOf(const File& file) const { return file.has_changed ? limit_ : 10 * limit_; }

  const double limit_;
  double elapsed_ = 0;
  std::vector<File> files_;
};

// When the file was last changed, in ns; nullopt: it is not there, or nobody can tell.
std::optional<std::int64_t> TimeOfFile(const std::string& path);

// `pattern` for one rank, whose number stands instead of kRankMark (rank_variables.h).  Pure.
std::string HeartbeatFile(const std::string& pattern, int rank);

struct HeartbeatOptions {
  std::string pattern;                      // an absolute path, with or without kRankMark
  std::chrono::milliseconds limit{300000};  // how long a file may stay as it is
  int ranks = 1;
  // By several threads at a time.  Tests have a slow one.
  std::function<std::optional<std::int64_t>(const std::string& path)> time_of = TimeOfFile;
};

// Ends a job that makes no progress by its heartbeat, as if a rank had failed.  After a request to
// stop it does not: what the ranks do then may take its time.  OnLaunch throws
// LaunchError(EX_OSERR) where there are no descriptors or threads left.
class Heartbeat : public JobWatcher {
 public:
  explicit Heartbeat(HeartbeatOptions options) : options_(std::move(options)) {}
  ~Heartbeat() override { Stop(); }

  void OnLaunch(WatchedJob& job) override;
  void OnDetach(WatchedJob& job) override;
  void Poll(WatchedJob& job) override;
  int fd() const override;  // readable when some file is late
  void AddTo(JobStatus* status) const override;

 private:
  struct Shared;

  void Stop();  // at once, also where a file system hangs
  std::optional<std::string> TakeLate(const WatchedJob& job);

  const HeartbeatOptions options_;
  std::shared_ptr<Shared> shared_;  // while it watches
};

}  // namespace launcher
