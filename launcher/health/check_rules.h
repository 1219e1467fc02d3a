// SPDX-License-Identifier: Apache-2.0
//
// Judges the facts of all nodes: one verdict for each check.  doc/reference/launching.md has the
// table of checks for users; limits: launcher/cli/check_limits.h.  Pure.

#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "launcher/cli/check_limits.h"
#include "launcher/health/node_info.h"
#include "launcher/health/verdict.h"

namespace launcher {

struct PlannedNode {
  std::string host;
  int gpus = 0;  // that ranks will use
};

struct CheckedJob {
  std::vector<PlannedNode> nodes;
  CheckLimits limits;
  std::string directory_error;  // why ddlrun could not make a file where ranks will start
  std::string launcher_end;     // why a node may not have answered
  std::string pmix_fault;       // that this Slurm is known to have with the PMIx of the nodes
};

// `info` has one entry per node of `job`; one whose host is "" did not answer.
std::vector<Verdict> CheckNodes(const CheckedJob& job, const std::vector<NodeInfo>& info);

// The single checks, and what they share, for the files of the rules only.  `nodes` are the nodes
// that have answered, at least one.  To add a node check: its fact in node_info.h, read in node/, a
// CheckNAME here and in the list of CheckNodes, a row in doc/reference/launching.md.  Pure.

struct AnsweredNode {
  const NodeInfo* info = nullptr;
  int planned_gpus = 0;
};
using Nodes = std::vector<AnsweredNode>;

using CheckNodesOf = Verdict(const Nodes& nodes, const CheckedJob& job);
CheckNodesOf CheckHardware, CheckGpuCount, CheckGpuUse, CheckGpuErrors, CheckGpuLinks,
    CheckNvlinkDomains, CheckImex, CheckInfiniband, CheckMemlock, CheckShm, CheckUsers,
    CheckDirectory, CheckMaster, CheckClocks, CheckVersions, CheckConnections;

// The hosts by the text that `text_of` gives them.  Hosts with "" are left out.
using HostsByText = std::map<std::string, std::vector<std::string>>;
HostsByText GroupHosts(const Nodes& nodes,
                       const std::function<std::string(const NodeInfo&)>& text_of);

// All of these hosts.
std::vector<std::string> HostsOf(const HostsByText& groups);

// "A, B" of the first 8 kinds of nodes, "A, ..., H and 12 more": thousands may all differ.
std::string FirstOf(const std::vector<std::string>& parts);

// FirstOf "A (n[1-2])", "B (n3)".
std::string GroupsText(const HostsByText& groups);

constexpr double kGib = 1LL << 30;
// "3.2 GiB"
std::string BytesText(long long bytes);
// "12.3 s", "1.25 ms"
std::string SecondsText(double seconds);
// "1 node", "4 nodes"
std::string CountText(std::size_t count, const std::string& noun);

}  // namespace launcher
