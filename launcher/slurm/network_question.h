// SPDX-License-Identifier: Apache-2.0
//
// Asks Slurm how the nodes of this job are connected.  The answer comes while ddlrun does something
// else: scontrol takes some milliseconds.

#pragma once

#include <memory>
#include <string>

#include "launcher/base/environment.h"
#include "launcher/slurm/scontrol.h"
#include "launcher/system/child_process.h"

namespace launcher {

class NetworkQuestion {
 public:
  // Starts `scontrol show topology`, which says the topology of the cluster.  With `of_partition`,
  // that of the job's partition is wanted, where it has one of its own (topology.yaml), and
  // `scontrol show partition` is started, too.  Throws LaunchError as CommandOutput does.
  NetworkQuestion(const Environment& environment, bool of_partition);

  // Waits for what `scontrol show topology` says, for 30 s at most.
  ScontrolAnswer Wait();

 private:
  Environment environment_;
  std::unique_ptr<CommandOutput> topology_, partition_;  // null where there is no scontrol in PATH
};

// Whether SLURM_TOPOLOGY_ADDR_PATTERN, which Slurm sets on the nodes of a job, says that the
// cluster's own topology is flat, so that there is nothing to ask for.  The topology of a partition
// does not show in it.
bool HasFlatTopology(const Environment& environment);

}  // namespace launcher
