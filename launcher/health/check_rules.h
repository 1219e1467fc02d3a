// SPDX-License-Identifier: Apache-2.0
//
// Judges the facts of all nodes: one verdict for each check.  doc/reference/launching.md has the
// table of checks for users; the limits are here.  Pure.

#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "launcher/health/node_info.h"
#include "launcher/health/verdict.h"

namespace launcher {

// By how much the memory of two nodes may differ: firmware keeps some of it for itself.
inline constexpr double kMemoryTolerance = 0.05;
// The locked memory that RDMA needs, for gradients and for the buffers of NCCL and MPI.
inline constexpr long long kMemlockNeeded = 1LL << 30;
// The free memory in /dev/shm that NVIDIA asks for in containers (--shm-size=1g).
inline constexpr long long kShmWanted = 1LL << 30;
// The free space in the working directory: five checkpoints of ResNet-50, of 205 MB each.
inline constexpr long long kDirectoryWanted = 1LL << 30;
// By how much clocks may differ.  They are read after a barrier, which even busy nodes leave within
// a tenth of a second.  A second is what logs and the times of files are put in order by.
inline constexpr double kClockToleranceSeconds = 1.0;
// How long a pair may take for kLinkMessageBytes there and back; the slowest network takes a tenth
// of it.
inline constexpr double kLinkWantedSeconds = 1.0;

struct PlannedNode {
  std::string host;
  int gpus = 0;  // that ranks will use
};

struct CheckedJob {
  std::vector<PlannedNode> nodes;
  std::string directory_error;  // why ddlrun could not make a file where ranks will start
  std::string launcher_end;     // why a node may not have answered
};

// `info` has one entry per node of `job`; one whose host is "" did not answer.
std::vector<Verdict> CheckNodes(const CheckedJob& job, const std::vector<NodeInfo>& info);

// The single checks, and what they share, for the files of the judge only.  `nodes` are the nodes
// that have answered, of which there is at least one.  Pure.

struct AnsweredNode {
  const NodeInfo* info = nullptr;
  int planned_gpus = 0;
};
using Nodes = std::vector<AnsweredNode>;

Verdict CheckHardware(const Nodes& nodes);
Verdict CheckGpuCount(const Nodes& nodes);
Verdict CheckGpuUse(const Nodes& nodes);
Verdict CheckGpuErrors(const Nodes& nodes);
Verdict CheckGpuLinks(const Nodes& nodes);
Verdict CheckNvlinkDomains(const Nodes& nodes);
Verdict CheckImex(const Nodes& nodes);
Verdict CheckInfiniband(const Nodes& nodes);
Verdict CheckMemlock(const Nodes& nodes);
Verdict CheckShm(const Nodes& nodes);
Verdict CheckDirectory(const Nodes& nodes, const std::string& directory_error);
Verdict CheckMaster(const Nodes& nodes);
Verdict CheckClocks(const Nodes& nodes);
Verdict CheckVersions(const Nodes& nodes);
// `hosts` are all hosts of the plan.
Verdict CheckConnections(const Nodes& nodes, const std::vector<std::string>& hosts);

// The hosts by the text that `text_of` gives them.  Hosts with "" are left out.
using HostsByText = std::map<std::string, std::vector<std::string>>;
HostsByText GroupHosts(const Nodes& nodes,
                       const std::function<std::string(const NodeInfo&)>& text_of);

// All of these hosts.
std::vector<std::string> HostsOf(const HostsByText& groups);

// "A (n[1-2]), B (n3)"
std::string GroupsText(const HostsByText& groups);

// "3.2 GiB"
std::string BytesText(long long bytes);
// "12.3 s", "1.25 ms"
std::string SecondsText(double seconds);
// "1 node", "4 nodes"
std::string CountText(std::size_t count, const std::string& noun);

}  // namespace launcher
