// SPDX-License-Identifier: Apache-2.0
//
// Whether the Slurm job still has the nodes on which ranks are to start.  `scontrol update
// NumNodes=N`, or the loss of a node in a job of sbatch --no-kill, makes a job smaller, while its
// script keeps a SLURM_JOB_NODELIST with all nodes.  srun then waits for a step for ever, in
// silence at first, and the daemons of mpirun fail.  Slurm is asked only where no rank has started
// for a while, or none at all has: an ordinary start does not wait for that.

#pragma once

#include <functional>

#include "launcher/features/feature.h"
#include "launcher/system/child_process.h"

namespace launcher {

extern const Feature kNodesOfJob;

struct NodesOfJobOptions {
  // A command that prints what Slurm says about the job; its first word is a path.  Empty: nobody
  // is asked.
  std::vector<std::string> question;
  Environment environment;  // of that command
  // Reads what it has printed: why the ranks cannot start, "" where they can.
  std::function<std::string(const std::string& text)> rejection;
  // How long a start takes before Slurm is asked.  It is asked again, while no rank has started,
  // after twice the time of before.
  std::chrono::milliseconds first_query_after{3000};
};

// Ends a start on nodes that the job no longer has.  At the end of one that has failed it asks
// once more, for 10 s at most.
class NodesOfJob : public JobWatcher {
 public:
  explicit NodesOfJob(NodesOfJobOptions options)
      : options_(std::move(options)), query_after_(options_.first_query_after) {}

  void OnLaunch(WatchedJob& job) override;
  void Poll(WatchedJob& job) override;
  void OnEnd(const WatchedJob& job, JobResult* result) override;
  Deadline deadline() const override { return deadline_; }
  pid_t child() const override { return question_ == nullptr ? 0 : question_->pid(); }
  void EndChild() override { question_.reset(); }

 private:
  std::string Rejection(WatchedJob::Clock::time_point now);

  const NodesOfJobOptions options_;
  std::chrono::milliseconds query_after_;
  Deadline deadline_;
  std::unique_ptr<CommandOutput> question_;
};

}  // namespace launcher
