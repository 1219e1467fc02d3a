// SPDX-License-Identifier: Apache-2.0
//
// The single checks, and what they share, for the files of the judge only.  `nodes` are the nodes
// that have answered, of which there is at least one.  Pure.

#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "launcher/health/judge.h"

namespace launcher {

struct AnsweredNode {
  const NodeFacts* facts = nullptr;
  int planned_gpus = 0;
};
using Nodes = std::vector<AnsweredNode>;

Verdict JudgeHardware(const Nodes& nodes);
Verdict JudgeGpuCount(const Nodes& nodes);
Verdict JudgeGpuUse(const Nodes& nodes);
Verdict JudgeGpuErrors(const Nodes& nodes);
Verdict JudgeGpuLinks(const Nodes& nodes);
Verdict JudgeNvlinkDomains(const Nodes& nodes);
Verdict JudgeImex(const Nodes& nodes);
Verdict JudgeInfiniband(const Nodes& nodes);
Verdict JudgeMemlock(const Nodes& nodes);
Verdict JudgeShm(const Nodes& nodes);
Verdict JudgeDirectory(const Nodes& nodes, const std::string& directory_error);
Verdict JudgeMaster(const Nodes& nodes);
Verdict JudgeClocks(const Nodes& nodes);
Verdict JudgeVersions(const Nodes& nodes);
// `hosts` are all hosts of the plan.
Verdict JudgeConnections(const Nodes& nodes, const std::vector<std::string>& hosts);

// The hosts by the text that `text_of` gives them.  Hosts with "" are left out.
using HostsByText = std::map<std::string, std::vector<std::string>>;
HostsByText GroupHosts(const Nodes& nodes,
                       const std::function<std::string(const NodeFacts&)>& text_of);

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
