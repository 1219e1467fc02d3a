// SPDX-License-Identifier: Apache-2.0
//
// Whether the Slurm job still has the nodes on which ranks are to start.  `scontrol update
// NumNodes=N`, or the loss of a node in a job of sbatch --no-kill, makes a job smaller, while its
// script keeps a SLURM_JOB_NODELIST with all nodes.  srun then waits for a step for ever, in
// silence at first, and the daemons of mpirun fail.  Slurm is asked only where no rank has started
// for a while, or none at all has: an ordinary start does not wait for that.
//
// For one thread, which waits for Slurm's answer in QueryNow alone.

#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launcher/base/environment.h"
#include "launcher/supervise/time_limits.h"
#include "launcher/system/child_process.h"

namespace launcher {

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

class NodesOfJob {
 public:
  using Clock = std::chrono::steady_clock;

  // `options` outlives this object.
  explicit NodesOfJob(const NodesOfJobOptions& options)
      : options_(options), query_after_(options.first_query_after) {}

  void ExpectStart(Clock::time_point now);
  // A rank has started, or none is to any more.
  void Dismiss();

  // When Look is to be called; nullopt: never.
  Deadline deadline() const { return deadline_; }
  // Asks when it is time, and reads the answer.  Returns why the ranks cannot start, once that is
  // known; else "".
  std::string Look(Clock::time_point now);
  // Asks and waits for the answer, for 10 s at most.  Of a start that has failed.
  std::string QueryNow() const;
  // The process that asks, a child of this one; 0 when there is none.
  pid_t question() const { return question_ == nullptr ? 0 : question_->pid(); }

 private:
  const NodesOfJobOptions& options_;
  std::chrono::milliseconds query_after_;
  Deadline deadline_;
  std::unique_ptr<CommandOutput> question_;
};

// Finds the nodes of a job from which something was not reported.  Pure.  `hosts` are those of the
// ranks; the result has each node once, in the order of its first rank.

// The nodes of the ranks that are not in `started`.
std::vector<std::string> NodesNotStarted(const std::vector<std::string>& hosts,
                                         const std::set<int>& started);

// The nodes from which no end of a rank was reported, while it was from others.  None where no node
// has reported any, since the nodes are then not the reason.  `hosts_with_ends` are the nodes that
// have, as srun writes them: "n[1-2]", with or without their domain.
std::vector<std::string> SilentNodes(const std::vector<std::string>& hosts,
                                     const std::set<std::string>& hosts_with_ends);

}  // namespace launcher
