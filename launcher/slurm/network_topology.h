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

#include <string>

#include "launcher/allocation/allocation.h"

namespace launcher {

// Sets network_path and network_unit of `allocation` by `text`.  A wider unit is one of more nodes.
// What cannot be read is passed over, since ranks can do without: a line in no known form, a list
// that is no hostlist, a name with other than printable characters.
void ReadNetworkTopology(const std::string& text, Allocation* allocation);

// The name of the partition's own topology, which topology.yaml has (25.05 on), from the text of
// `scontrol show partition NAME`; "" where it has none.
std::string TopologyOfPartition(const std::string& text);

}  // namespace launcher
