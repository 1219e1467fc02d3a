// SPDX-License-Identifier: Apache-2.0
//
// What --max-restarts, --spare-nodes, --min-nodes, --requeue and --progress-file do: asks Slurm and
// the file system for what the decision of restart_policy.h depends on, and carries it out.  One
// object for one ddlrun.

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

// When the file, or the newest entry of the directory, was last written.  Names that begin with '.'
// are ignored, since such a file may not be complete.  nullopt where there is none.
std::optional<std::filesystem::file_time_type> NewestTime(const std::filesystem::path& path);

// The file or directory by which progress is known: --progress-file, or the directory of
// checkpoints where the program is a ddltraind that trains; "" where there is none.  Pure.
std::string ProgressFile(const Options& options);

class Restarts {
 public:
  // `dispensable_nodes` and `min_nodes`: see PlannedJob.  Throws LaunchError(EX_CONFIG) for
  // --requeue of a job that cannot be requeued.
  Restarts(const Options& options, const Environment& environment, int dispensable_nodes,
           int min_nodes = 0);

  // What the ranks of the next run are told: how often the job was put into the queue again, plus
  // how often ranks were started again since.
  int count() const { return requeued_ + policy_.restarts(); }
  // The nodes that are lost or left out.
  const std::vector<std::string>& lost_nodes() const { return lost_nodes_; }

  // From now on these nodes get no ranks.  False, and nothing changes, where more nodes would be
  // left out than are dispensable.
  bool LeaveOut(const std::vector<std::string>& nodes);

  // `hosts`: the nodes of the Slurm job on which ranks are to run; none outside it.
  void BeforeRun(const std::vector<std::string>& hosts);

  // Decides what follows, and puts the job into the queue again where that is the decision.
  Decision AfterRun(const JobResult& result);

 private:
  std::optional<std::filesystem::file_time_type> ProgressTime() const;

  const Options& options_;
  const Environment& environment_;
  const int dispensable_nodes_;
  const int min_nodes_;
  const std::string progress_file_;
  int requeued_ = 0;  // SLURM_RESTART_COUNT
  RestartPolicy policy_;
  std::vector<std::string> lost_nodes_;
  std::string job_id_;  // SlurmJob::id, where Slurm was asked at the start
  // The nodes of the job at the start, and those on which ranks were to run: of these it may have
  // lost some before.
  std::vector<std::string> nodes_before_;
  std::chrono::steady_clock::time_point start_;
  std::optional<std::filesystem::file_time_type> file_before_;
};

// Finds out whether silent nodes are gone.  Slurm itself notices it after its SlurmdTimeout, which
// is five minutes by default, while the ranks on other nodes notice it within seconds.

// Where more nodes are silent than this, the nodes are not the reason.
inline constexpr std::size_t kMaxProbes = 8;

struct ProbeOutcome {
  std::vector<std::string> lost;  // hosts on which the step did not run
  // Why that says nothing of the hosts, with what srun has written; "" if it does.
  std::string unknown;
};

// Runs a short step on each of `hosts` and on `other`, which are nodes of this job, at the same
// time, for up to `limit`. `srun` is its path.  Nothing is known when it did not run on `other`
// either, a node that was not silent: then Slurm does not answer, or does not accept such a step.
// Nothing is asked where `other` is "", for more than kMaxProbes hosts, and in a heterogeneous job,
// where srun does not find the component of a node by its name.
ProbeOutcome ProbeNodes(const std::vector<std::string>& hosts, const std::string& other,
                        const std::string& srun, const Environment& environment,
                        std::chrono::milliseconds limit);

}  // namespace launcher
