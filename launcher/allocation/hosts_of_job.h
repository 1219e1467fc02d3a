// SPDX-License-Identifier: Apache-2.0
//
// Finds the hosts that the user names inside a Slurm job (by -H, -hostfile or a rankfile) among the
// nodes of the job.  Pure, safe from any thread.

#pragma once

#include <string>

#include "launcher/allocation/allocation.h"
#include "launcher/allocation/host_index.h"

namespace launcher {

class HostsOfJob {
 public:
  // `job` outlives this.
  explicit HostsOfJob(const Allocation& job);

  // The node that `host` names, with or without its domain; nullptr where there is none.
  const AllocatedNode* Find(const std::string& host) const;

  // As Find, for a host that the user has named in `who` ("-H n9", the name of a file).  Throws
  // LaunchError(EX_CONFIG), with the line to write for sbatch, where the job has no such node.
  const AllocatedNode& Require(const std::string& host, const std::string& who) const;

 private:
  const Allocation& job_;
  HostIndex index_;
};

// The nodes of `job` that `requested` (from -H or -hostfile) names, in the order of `requested`,
// with the names, GPUs and components that `job` has for them.  A node has the slots of
// `requested`; where that gives none it has one per GPU, and without GPUs those of `job`.  A node
// that is named twice has the slots of both.  Throws as Require does.
Allocation RestrictToHosts(const Allocation& job, const Allocation& requested);

}  // namespace launcher
