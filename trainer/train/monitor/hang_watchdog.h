// SPDX-License-Identifier: Apache-2.0
//
// Hang detection: finds the rank for which all others wait.  A thread of each rank looks how long
// ago the loop has last made progress: begun something, or come back from a call that needs the
// other ranks.  Too long is 5 times the longest such time so far in the same activity, but no less
// than a floor; the first step, the first evaluation batch, start-up and checkpoints have 10 times
// the floor.  Time in which the whole process was stopped does not count.  In a pause the ranks
// meet several times a second, which is progress.
//
// MPI itself hangs then, so the ranks meet beside it: at half the bound each that lives writes a
// file into a directory that all see, at the bound the lowest of them reads what is there, and says
// who is not, or who is there but not waiting (train/monitor/hang_watchdog.h).  In a healthy run no
// file is written.
//
// Before the run is ended, each rank that lives writes the stacks of its threads
// (telemetry/stacks/thread_stacks.h) to MODEL_DIR/stacks/rank-N.txt, by a thread that is left
// behind where it hangs as well.
//
// A rank that waits for its data (train/monitor/monitored.h), while all others wait for it or for
// theirs, is not hung: on_wait says so after each further bound, and only after 10 of them the run
// ends.
//
// Threads: all calls from the thread of the loop, but for Describe; on_wait and on_hang come from a
// thread of the watch.

#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "trainer/comm/communicator.h"
#include "trainer/train/monitor/stack_dump_service.h"

namespace trainer {

// Who is to blame when nothing moves any more: what each rank said about itself, and the line that
// follows from it.  Pure.

enum class Activity : std::uint8_t { kSetUp, kTraining, kCheckpoint, kEvaluation, kPause };
inline constexpr std::size_t kActivities = 5;

// What a rank says when it has seen no progress for long.
struct RankState {
  int rank = 0;
  Activity activity = Activity::kSetUp;
  std::int64_t step = 0;  // updates done before
  bool waiting = false;   // in a call that needs the other ranks; false: at work of its own
  double seconds = 0;     // since when
  bool reading = false;   // at work of its own: it waits for its data
  std::string file = {};  // from which, or ""
  // How long who reads it has read the same, in seconds: not a part of what is reported.
  double unchanged_seconds = 0;
};

// One line, in the order of the members; another one a millisecond later.
std::string ToText(const RankState& state);
// False if `text` is no such line.
bool FromText(const std::string& text, RankState& state);

// `said` without those who are silent by now: who waits for data says so again and again, but not
// as a process that is stopped, and then has said the same for `bound` seconds.
std::vector<RankState> StillResponding(std::span<const RankState> said, double bound);
// Whether the run stands still for ranks that wait for their data, and for nothing else: all
// `ranks` are among those that are still heard, and who does not wait for others reads.
bool IsInputWait(std::span<const RankState> received, std::size_t ranks);
// "rank 3 on node7 has waited 130 s for its data (reading FILE); the others wait for it".
// REQUIRES: IsInputWait.
std::string InputWaitReport(const RankState& own, std::span<const RankState> received,
                            const std::vector<std::string>& hosts);

// Of `ranks`, those that are not among `said`.
std::vector<int> SilentRanks(std::span<const RankState> said, std::size_t ranks);

// "in training, step 17, waiting for other ranks, no progress for 61 s".
std::string DescribeState(const RankState& state);

// "; rank 1 on n2 is in read < ReadAhead::Read, the others in ...": where the rank is that is not
// where most are, or "" if there is no such rank.  briefs[r]: where rank r is, or "" (InBrief).
std::string DescribeOddOne(std::span<const RankState> said, const std::vector<std::string>& briefs,
                           const std::vector<std::string>& hosts);

// "no progress for 60 s in training, step 17: rank 2 on n2 does not answer: ..."  `own` is the
// state of the rank that speaks, `said` those that were found, hosts[r] the node of rank r.  Nobody
// is accused if not even the own is among them.
std::string HangReport(const RankState& own, std::span<const RankState> said,
                       const std::vector<std::string>& hosts);

struct HangWatchdogOptions {
  double floor_seconds = 60;
  std::filesystem::path model_dir;  // seen by all ranks
  std::string run_name;             // the same in all ranks, of no other run at this time
  int rank = 0;
  int size = 1;
  std::string host;          // of this rank
  std::int64_t batches = 1;  // of a step of training: a batch is progress, if not yet a step
  // Told again and again, with one line, that ranks wait for their data.
  std::function<void(const std::string& report)> on_wait = [](const std::string&) {};
  // Told once, with one line; must end the process (a normal end would wait for the others).
  std::function<void(const std::string& report)> on_hang;
  // Writes the stacks of this rank.  It may still run when the watch is gone.
  std::function<std::vector<ThreadStack>(const StackDumpOptions&)> write_stacks =
      WriteStackDumpFile;
  std::chrono::milliseconds own_stacks_time{10'000};    // to wait for that, and
  std::chrono::milliseconds others_stacks_time{5'000};  // for the stacks of the others
};

class HangWatchdog {
 public:
  // Watches from here on, before the ranks have met: they may hang in just that.
  explicit HangWatchdog(HangWatchdogOptions options);
  ~HangWatchdog();
  HangWatchdog(const HangWatchdog&) = delete;
  HangWatchdog& operator=(const HangWatchdog&) = delete;

  // The ranks have met.  What they do now has no bound: a large data set takes long to open.
  void Pause();
  // Collective: the ranks tell each other their hosts, without which a report has numbers alone.
  // The watch goes on.
  void ExchangeHosts(Communicator& communicator);
  // The loop begins a step, a checkpoint, an evaluation, a pause.
  void Enter(Activity activity, std::int64_t step);
  // It begins to wait for the other ranks, and has done so.
  void BeginWaiting() { Begin(&RankState::waiting); }
  void EndWaiting() { End(&RankState::waiting); }
  // It begins to wait for its data, and has got them.
  void BeginReading() { Begin(&RankState::reading); }
  void EndReading() { End(&RankState::reading); }
  // Where the rank is now, in words.  From any thread.
  std::string Describe() const;

 private:
  // Of one activity.
  struct History {
    std::int64_t heartbeats = 0;
    double longest = 0;  // seconds; the first beats do not count
  };

  // By rank.
  struct Peers {
    std::vector<std::string> hosts;
    std::vector<std::uint64_t> processes;  // their ids; 0: not known
  };
  // What a rank has said last.
  struct Words {
    std::string text;
    double since = 0;  // seconds of this rank without progress, when it was read first
  };

  void Begin(bool RankState::*wait);
  void End(bool RankState::*wait);
  void TouchProgress();
  // In the activity of now: all of a first step or evaluation batch.
  std::int64_t WarmUpHeartbeats() const;
  double Bound() const;
  void Run();
  void Look(std::unique_lock<std::mutex>& lock);
  void Check(std::unique_lock<std::mutex>& lock, double bound);
  // Since the state was written; or it is to end.
  bool HasProgressed() const { return stopping_ || last_reported_beat_ != progress_count_; }
  std::string LogDispatcher(const RankState& own, const std::vector<RankState>& received,
                            const std::vector<std::string>& briefs, const Peers& peers) const;
  std::string StatesOfSilent(const std::vector<int>& silent, const Peers& peers) const;
  void WriteStacks(const RankState& state) const;
  std::vector<std::string> AwaitBriefs(const std::vector<RankState>& received,
                                       std::unique_lock<std::mutex>& lock);
  std::vector<std::string> ReadBriefs(const std::vector<RankState>& received) const;
  void WriteState(const RankState& state) const;
  void RemoveState() const;
  std::vector<RankState> ReadStates(double seconds);

  const HangWatchdogOptions options_;
  const std::filesystem::path directory_;  // of this run alone

  std::vector<Words> words_;  // by rank, since the state was written; of the watch's thread alone
  mutable std::mutex mutex_;  // guards everything below
  Peers peers_;
  std::condition_variable stopping_changed_;
  bool stopping_ = false;
  bool paused_ = false;
  RankState state_;  // state_.seconds: since the last beat
  std::uint64_t progress_count_ = 0;
  std::array<History, kActivities> history_;
  std::uint64_t last_reported_beat_ = 0;  // at which WriteState was last called
  bool logged_ = false;
  // Of the time since the last beat, in seconds; all 0 at a beat.
  double report_again_ = 0;  // when to write the state again
  double recheck_at_ = 0;
  double excused_at_ = 0;  // when ranks were last seen waiting for their data
  double log_again_ = 0;   // that they do
  double turn_ = 0;      // to end the run where no lower rank has; 0: it has not been judged a hang
  std::jthread thread_;  // last: starts when all the rest is there
};

}  // namespace trainer
