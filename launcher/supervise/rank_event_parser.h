// SPDX-License-Identifier: Apache-2.0
//
// Reads what shims and srun say about the ranks on the standard error of srun or mpirun, and keeps
// what follows from it: the root cause (which rank failed first), and which nodes are lost.  Pure.

#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/supervise/failure_report.h"

namespace launcher {

class RankEventParser {
 public:
  // What a line means for the job.  kStart: another rank has started; kWaiting: srun waits for
  // resources; kGranted: it has them; kEnd: another rank has ended, and the job goes on; kGone:
  // another one has ended otherwise, and left nothing; kAttachment: attached() is another.
  enum class Event {
    kNone,
    kStart,
    kWaiting,
    kGranted,
    kEnd,
    kGone,
    kFailure,
    kLostNode,
    kAttachment
  };
  struct Reading {
    // What the user sees instead of the line, with its line end; "": nothing; nullopt: the line
    // itself.
    std::optional<std::string> instead;
    Event event = Event::kNone;
  };

  // `key` is that of the reports of this start.
  explicit RankEventParser(const std::string& key) : head_(EventHead(key)) {}

  // Reads a line, without its end, that came `seconds` after the start.  A line that a shim has
  // marked as one of its program (EmitOutputMark) means nothing, whatever is in it.
  Reading Read(std::string_view line, double seconds);

  // The rank that failed first, with its last lines, unless these are the last ones that the user
  // has seen on standard error.  That is the one that was reported first,
  // unless another one ended before it by the clocks of their nodes, or crashed within the
  // same second, of which its peers may learn before its shim.
  std::optional<RankFailure> failure() const;
  // The rank that has called MPI_Abort, as MPICH says it; its host is not told.
  const std::optional<RankFailure>& abort() const { return abort_; }
  const std::vector<std::string>& lost_nodes() const { return lost_nodes_; }
  // The step of srun, "123.4"; "" until a shim has reported it.
  const std::string& step() const { return step_; }
  // Ranks whose program runs, or has run.
  const std::set<int>& started() const { return started_; }
  // Whether any rank has.
  bool has_begun() const { return !started_.empty() || !ended_.empty(); }
  // Ranks whose program has ended, as their shims say, well or not.
  const std::set<int>& ended() const { return ended_; }
  // Ranks that are gone with all that they had started, as their shims say.
  const std::set<int>& gone() const { return gone_; }
  // The largest exit code of these: 128 + n for signal n.
  int exit_code_of_gone() const { return exit_code_of_gone_; }
  // What the GPUs of a node have taken, in joules, by the rank whose shim has said so.
  const std::map<int, double>& joules() const { return joules_; }
  // Ranks that run, to which somebody is attached.
  const std::set<int>& attached() const { return attached_; }
  // The exit code of each that did not end well: 128 + n for signal n.
  const std::map<int, int>& exit_codes() const { return exit_codes_; }
  // Nodes on which a rank was reported to have failed or stopped early, as srun writes them:
  // "n[1-2]".
  const std::set<std::string>& hosts_with_ends() const { return hosts_with_ends_; }
  // Whether srun has given up waiting for the end of the step.
  bool has_left_step() const { return has_left_step_; }
  // Why the first shim that did so has refused to start its rank, which it says without a report:
  // "rank 1 on n2: cannot start 'train': No such file or directory"; "" where none has.  What
  // several ranks say alike is seen once: "...; 3 other ranks say the same".
  std::string rejection() const;
  // The last lines that are no reports: of srun or mpirun, or of ranks.
  const Tail& other_lines() const { return other_lines_; }
  // Whether mpirun has said that the srun of its daemons has failed.
  bool has_lost_daemons() const { return has_lost_daemons_; }
  // Why Slurm ended the step before any rank had failed: " DUE TO TIME LIMIT", or "" after scancel.
  // nullopt where it did not, or where failure() may have been first.
  std::optional<std::string> cancelled() const;

 private:
  struct EndReading {
    bool is_shown;
    Event event;
  };

  bool IsKnownRejection(std::string_view text);
  Reading ReadOutput(const std::string& line, double seconds);
  Reading ReadEvent(const LineWithEvent& line, double seconds);
  EndReading ReadEnd(const RankExit& end, double seconds);
  void ReadAbort(std::string_view line, double seconds);
  bool IsEarlierCause(const RankExit& end, const RankExit& known) const;
  void SetFailure(const RankExit& end, double seconds);

  const std::string head_;
  std::optional<RankFailure> failure_;
  std::optional<RankFailure> abort_;
  std::map<int, RankExit> killed_;  // by SIGKILL: the ranks
  std::set<int> killed_alone_;      // of these, as their shims say
  std::map<int, Tail> last_lines_;  // of ranks whose end was not reported, and of the first failure
  ExitCodeCounts ends_;
  std::vector<std::string> lost_nodes_;
  std::set<int> started_;
  std::set<int> ended_;
  std::set<int> gone_;
  std::set<int> attached_;
  int exit_code_of_gone_ = 0;
  std::map<int, int> exit_codes_;
  std::map<int, double> joules_;
  std::set<std::string> hosts_with_ends_;
  std::string step_;
  bool has_left_step_ = false;
  bool has_lost_daemons_ = false;
  std::string rejection_;
  std::set<std::string, std::less<>> reasons_;  // of all that were refused, without their ranks
  int repeated_rejections_ = 0;
  Tail other_lines_;
  std::optional<std::string> cancelled_;
  bool has_ended_task_ = false;   // srun has reported the end of a task
  bool has_failed_ = false;       // a rank by itself, and not because the step was cancelled
  bool has_killed_rank_ = false;  // by SIGKILL, which may have been sent to it alone
};

}  // namespace launcher
