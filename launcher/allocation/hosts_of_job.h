// SPDX-License-Identifier: Apache-2.0
//
// Hosts that the user names inside a Slurm job (-H, -hostfile, a rankfile), found among the nodes
// of the job.  Pure, safe from any thread.

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

  // Find, for a host that `who` names ("-H n9", a file).  Throws LaunchError(EX_CONFIG) with the
  // sbatch line where there is none.
  const AllocatedNode& Require(const std::string& host, const std::string& who) const;

 private:
  const Allocation& job_;
  HostIndex index_;
};

// The nodes of `job` that `asked` (-H, -hostfile) names, in its order, with the job's names, GPUs
// and components.  Slots are those of `asked`, else one per GPU, else the job's; a node named twice
// has the slots of both.  Throws as Require.
Allocation RestrictToHosts(const Allocation& job, const Allocation& asked);

}  // namespace launcher
