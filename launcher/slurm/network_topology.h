// SPDX-License-Identifier: Apache-2.0
//
// Reads what Slurm knows of the network between nodes, from the text of `scontrol show topology`.
// Pure, safe from any thread.
//
//   topology/tree          SwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[1,3] Switches=...
//   topology/block         BlockName=b1 BlockIndex=0 Nodes=n[1,3] BlockSize=2
//                          AggregatedBlock=b[1-2] BlockIndex=2 Nodes=n[1-4] BlockSize=4
//   topology/ring          RingName=r1 Nodes=n[1-8] RingSize=8
//   topology/torus3d       TorusName=t1 Dims=4x4x4 Nodes=n[1-64]
//   topology/flat          "No topology information available", or nothing
//
// Earlier versions lack BlockSize (before 24.05), blocks (before 23.11), rings and tori (before
// 26.05).  Sources: the man pages topology.conf(5) and scontrol(1), https://slurm.schedmd.com/
// topology.html, and the plugins of Slurm 22.05 to 26.05, which print these lines.

#pragma once

#include <memory>
#include <string>

#include "launcher/allocation/allocation.h"
#include "launcher/base/environment.h"
#include "launcher/slurm/slurm_job.h"
#include "launcher/system/child_process.h"

namespace launcher {

// Sets network_path and network_unit of `allocation` by `text`.  A wider unit is one of more nodes.
// What cannot be read is passed over, since ranks can do without: a line in no known form, a list
// that is no hostlist, a name with other than printable characters.
void ReadNetworkTopology(const std::string& text, Allocation* allocation);

// The name of the partition's own topology, which topology.yaml has (25.05 on), from the text of
// `scontrol show partition NAME`; "" where it has none.
std::string TopologyOfPartition(const std::string& text);

// Asks Slurm how the nodes of this job are connected.  The answer comes while ddlrun does something
// else: scontrol takes some milliseconds.
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
