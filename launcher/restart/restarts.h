// SPDX-License-Identifier: Apache-2.0
//
// --max-restarts, --spare-nodes, --requeue and --progress-file at work: asks Slurm and the file
// system what restart_policy.h needs to decide with.  One object for one ddlrun.

#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "launcher/base/environment.h"
#include "launcher/cli/options.h"
#include "launcher/restart/restart_policy.h"
#include "launcher/supervise/supervisor.h"

namespace launcher {

// Of a file, or of the newest entry of a folder; names that start with '.' are passed over, since
// such a file may be half-written.  nullopt where there is none.
std::optional<std::filesystem::file_time_type> NewestTime(const std::filesystem::path& path);

// What tells of progress: --progress-file, or the folder of the checkpoints of a ddltraind that
// trains; "": nothing.  Pure.
std::string ProgressFile(const Options& options);

class Restarts {
 public:
  // Throws LaunchError(EX_CONFIG) for --requeue of a job that cannot be requeued.
  Restarts(const Options& options, const Environment& environment);

  // What ranks of the next run are told: how often this job was requeued, and ranks were started
  // again since.
  int count() const { return requeued_ + policy_.restarts(); }
  // Those that are lost or left out.
  const std::vector<std::string>& lost_nodes() const { return lost_nodes_; }

  // These nodes get no ranks from now on.  False, and nothing has changed, where too few would be
  // left (--spare-nodes).
  bool LeaveOut(const std::vector<std::string>& nodes);

  void BeforeRun();

  // Decides, and requeues the job where that is the decision.
  Decision AfterRun(const JobResult& result);

 private:
  std::optional<std::filesystem::file_time_type> ProgressTime() const;

  const Options& options_;
  const Environment& environment_;
  const std::string progress_file_;
  int requeued_ = 0;  // SLURM_RESTART_COUNT
  RestartPolicy policy_;
  std::vector<std::string> lost_nodes_;
  std::vector<std::string> nodes_before_;  // of the job, as Slurm said at the start
  std::chrono::steady_clock::time_point start_;
  std::optional<std::filesystem::file_time_type> file_before_;
};

}  // namespace launcher
