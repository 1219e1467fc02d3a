// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/unresponsive_nodes.h"

#include "launcher/allocation/host_index.h"
#include "rankfile/hostlist.h"
#include "rankfile/parse_error.h"

namespace launcher {
namespace {

std::vector<std::string> Expanded(const std::string& hosts) {
  try {
    return rankfile::ExpandHostlist(hosts);
  } catch (const rankfile::ParseError&) {
    return {};
  }
}

}  // namespace

std::vector<std::string> NodesNotStarted(const std::vector<std::string>& hosts,
                                         const std::set<int>& started) {
  std::vector<std::string> nodes;
  std::set<std::string> known;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    if (started.contains(static_cast<int>(rank))) continue;
    if (known.insert(hosts[rank]).second) nodes.push_back(hosts[rank]);
  }
  return nodes;
}

std::vector<std::string> SilentNodes(const std::vector<std::string>& hosts,
                                     const std::set<std::string>& hosts_with_ends) {
  HostIndex known;
  for (const std::string& names : hosts_with_ends) {
    for (const std::string& host : Expanded(names)) known.Add(host);
  }
  std::vector<std::string> nodes;
  if (known.IsEmpty()) return nodes;
  for (const std::string& host : hosts) {
    if (known.Holds(host)) continue;
    known.Add(host);
    nodes.push_back(host);
  }
  return nodes;
}

}  // namespace launcher
