// SPDX-License-Identifier: Apache-2.0
//
// What shims and srun say about the ranks on standard error of srun or mpirun, from every node,
// and what follows: which rank failed first, which nodes are lost.  Pure.

#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/supervise/end_counts.h"
#include "launcher/supervise/failure_report.h"
#include "launcher/supervise/tail.h"

namespace launcher {

class RankReports {
 public:
  // What a line means for the job.  kStart: another rank has started; kWaiting: srun waits for
  // resources; kGranted: it has them.
  enum class News { kNone, kStart, kWaiting, kGranted, kFailure, kLostNode };
  struct Reading {
    // What the user sees in place of the line, with its end; "": nothing; nullopt: the line itself.
    std::optional<std::string> instead;
    News news = News::kNone;
  };

  // `key`: of the reports of this start.
  explicit RankReports(const std::string& key) : head_(ReportHead(key)) {}

  // Reads a line without its end that came `seconds` after the start.
  Reading Read(std::string_view line, double seconds);

  // The rank that failed first, with its last lines: the first that was told of, or the first by
  // the clocks of the nodes.
  std::optional<RankFailure> failure() const;
  const std::vector<std::string>& lost_nodes() const { return lost_nodes_; }
  // "123.4" of srun, once it runs.
  const std::string& step() const { return step_; }
  // Ranks whose program runs, or has run.
  const std::set<int>& started() const { return started_; }
  // Nodes of which somebody said that a rank has ended there, as srun writes them: "n[1-2]".
  const std::set<std::string>& hosts_with_ends() const { return hosts_with_ends_; }
  // srun has given up waiting for the step to end.
  bool has_left_step() const { return has_left_step_; }
  // Slurm ended the step before any rank had failed: " DUE TO TIME LIMIT" or, by scancel, "".
  std::optional<std::string> cancelled() const;

 private:
  struct EndReading {
    bool is_shown;
    News news;
  };

  Reading ReadReport(const LineWithReport& line, double seconds);
  EndReading ReadEnd(const RankEnd& end, double seconds);
  void SetFailure(const RankEnd& end, double seconds);

  const std::string head_;
  std::optional<RankFailure> failure_;
  std::map<int, Tail> last_lines_;  // of ranks whose end was not told of yet, and of the first
  EndCounts ends_;
  std::vector<std::string> lost_nodes_;
  std::set<int> started_;
  std::set<std::string> hosts_with_ends_;
  std::string step_;
  bool has_left_step_ = false;
  std::optional<std::string> cancelled_;
  bool has_ended_task_ = false;     // srun has told of one
  bool has_failed_before_ = false;  // a rank, before the step was cancelled
};

}  // namespace launcher
