// SPDX-License-Identifier: Apache-2.0
//
// The single checks, and what they share, for the files of the judge only.  `nodes` are the nodes
// that have answered, of which there is at least one.  Pure.

#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "launcher/health/check_rules.h"

namespace launcher {

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
