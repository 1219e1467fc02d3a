// SPDX-License-Identifier: Apache-2.0
//
// NVLink between nodes: systems such as GB200 NVL72, whose NVSwitches join the GPUs of several
// nodes.  There NCCL goes over NVLink to the nodes of the same domain (cluster UUID and clique),
// where IMEX lets it, and else over the network without an error (NCCL_MNNVL_ENABLE).

#include <algorithm>
#include <set>

#include "launcher/health/check_rules.h"

namespace launcher {
namespace {

// What people need of "0123456789abcdef0123456789abcdef.7": "01234567.7".
std::string ShownDomain(const std::string& domain) {
  if (domain.empty()) return "none";
  constexpr std::size_t kShown = 8;
  const std::size_t dot = domain.find('.');
  if (dot == std::string::npos || dot <= kShown) return domain;
  return domain.substr(0, kShown) + domain.substr(dot);
}

// The domain of a node; of several, should its GPUs differ, all; "" for none.
std::string DomainOf(const NodeInfo& info) {
  std::set<std::string> domains;
  for (const GpuInfo& gpu : info.gpus) {
    if (!gpu.nvlink_domain.empty()) domains.insert(gpu.nvlink_domain);
  }
  std::string text;
  for (const std::string& domain : domains) text += (text.empty() ? "" : "+") + domain;
  return text;
}

struct Domain {
  std::string name;
  std::vector<std::string> hosts;
  bool is_torn = false;  // nodes of another domain are between its own
};

// The domains in the order of their first nodes.
std::vector<Domain> DomainsOf(const Nodes& nodes) {
  std::vector<Domain> domains;
  std::string last;
  for (const AnsweredNode& node : nodes) {
    const std::string name = DomainOf(*node.info);
    auto domain = std::find_if(domains.begin(), domains.end(),
                               [&](const Domain& known) { return known.name == name; });
    const bool is_new = domain == domains.end();
    if (is_new) domain = domains.insert(domain, {name, {}});
    if (!is_new && last != name) domain->is_torn = true;
    domain->hosts.push_back(node.info->host);
    last = name;
  }
  return domains;
}

std::string DomainsText(const std::vector<Domain>& domains) {
  std::vector<std::string> parts;
  for (const Domain& domain : domains) {
    parts.push_back(ShownDomain(domain.name) + " (" + HostsText(domain.hosts) + ")");
  }
  return FirstOf(parts);
}

}  // namespace

Verdict CheckNvlinkDomains(const Nodes& nodes, const CheckedJob& /*job*/) {
  const std::string check = "nvlink-domains";
  const std::vector<Domain> domains = DomainsOf(nodes);
  const bool any_domain = std::any_of(domains.begin(), domains.end(),
                                      [](const Domain& domain) { return !domain.name.empty(); });
  if (!any_domain) return {check, Status::kOk, "no GPU reaches other nodes over NVLink", ""};
  const bool any_torn = std::any_of(domains.begin(), domains.end(),
                                    [](const Domain& domain) { return domain.is_torn; });
  std::string in_order;
  bool has_none = false;
  for (const Domain& domain : domains) {
    in_order += (in_order.empty() ? "" : ",") + HostsText(domain.hosts);
    has_none = has_none || domain.name.empty();
  }
  if (any_torn) {
    return {check, Status::kWarn, "nodes of a domain are not side by side: " + DomainsText(domains),
            "neighbouring ranks talk over the network: -H " + in_order};
  }
  if (has_none) {
    return {check, Status::kWarn, DomainsText(domains),
            "GPUs without a domain have not joined the fabric: nvidia-smi -q on the node, section "
            "Fabric"};
  }
  return {check, Status::kOk, DomainsText(domains), ""};
}

Verdict CheckImex(const Nodes& nodes, const CheckedJob& /*job*/) {
  const std::string check = "imex";
  std::set<std::string> hosts;  // that share a domain with another node
  for (const Domain& domain : DomainsOf(nodes)) {
    if (domain.name.empty() || domain.hosts.size() < 2) continue;
    hosts.insert(domain.hosts.begin(), domain.hosts.end());
  }
  if (hosts.empty()) return {check, Status::kOk, "not needed: no NVLink between these nodes", ""};
  const HostsByText problems = GroupHosts(nodes, [&hosts](const NodeInfo& info) {
    return hosts.contains(info.host) ? info.imex_problem : std::string();
  });
  if (problems.empty()) {
    return {check, Status::kOk, "a channel can be opened on " + CountText(hosts.size(), "node"),
            ""};
  }
  const std::string advice =
      "without an IMEX channel NCCL talks over the network instead of NVLink, or fails with "
      "NCCL_MNNVL_ENABLE=1: ask your admin for NVreg_CreateImexChannel0=1 or Slurm's "
      "SwitchType=switch/nvidia_imex";
  const std::vector<std::string> bad = HostsOf(problems);
  // Where no node has one, all talk over the network alike.
  if (bad.size() == hosts.size()) {
    return {check, Status::kWarn, "no channel: " + GroupsText(problems), advice};
  }
  return {check, Status::kFail, "no channel: " + GroupsText(problems), advice, bad};
}

}  // namespace launcher
