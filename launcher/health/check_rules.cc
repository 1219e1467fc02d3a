// SPDX-License-Identifier: Apache-2.0

#include "launcher/health/check_rules.h"

#include <array>
#include <cstdio>

#include "launcher/health/check_rules.h"
#include "support/number.h"

namespace launcher {
namespace {

// The machines that answered for more than one host of the plan: "vm (n1,n2)".
std::string SharedMachines(const std::vector<NodeInfo>& info) {
  HostsByText hosts_of;
  for (const NodeInfo& node : info) {
    if (!node.machine.empty()) hosts_of[node.machine].push_back(node.host);
  }
  std::erase_if(hosts_of, [](const auto& entry) { return entry.second.size() < 2; });
  return GroupsText(hosts_of);
}

Verdict CheckAnswers(const CheckedJob& job, const std::vector<NodeInfo>& info) {
  const std::string check = "nodes";
  std::vector<std::string> silent;
  for (std::size_t node = 0; node < info.size(); ++node) {
    if (info[node].host.empty()) silent.push_back(job.nodes[node].host);
  }
  if (!silent.empty()) {
    return {check, Status::kFail, "no answer from " + HostsText(silent) + "; " + job.launcher_end,
            "look whether the node is up and ddlrun is installed there; leave it out with sbatch "
            "--exclude=" +
                HostsText(silent),
            // If no node has answered, the nodes are not the reason.
            silent.size() < info.size() ? silent : std::vector<std::string>()};
  }
  const std::string shared = SharedMachines(info);
  if (!shared.empty()) {
    return {check, Status::kWarn, "one machine answered for several hosts: " + shared,
            "ranks run where the plan does not say, unless these are names of one machine"};
  }
  return {check, Status::kOk, CountText(info.size(), "node") + " answered", ""};
}

std::string Decimal(double number, int digits) {
  std::array<char, 64> text = {};
  std::snprintf(text.data(), text.size(), "%.*f", digits, number);
  return text.data();
}

}  // namespace

std::vector<Verdict> CheckNodes(const CheckedJob& job, const std::vector<NodeInfo>& info) {
  std::vector<Verdict> verdicts = {CheckAnswers(job, info)};
  Nodes nodes;
  for (std::size_t node = 0; node < info.size(); ++node) {
    if (!info[node].host.empty()) nodes.push_back({&info[node], job.nodes[node].gpus});
  }
  if (nodes.empty()) return verdicts;
  for (const auto& check :
       {CheckHardware, CheckGpuCount, CheckGpuUse, CheckGpuErrors, CheckGpuLinks,
        CheckNvlinkDomains, CheckImex, CheckInfiniband, CheckMemlock, CheckShm, CheckUsers,
        CheckDirectory, CheckMaster, CheckClocks, CheckVersions, CheckConnections}) {
    verdicts.push_back(check(nodes, job));
  }
  return verdicts;
}

HostsByText GroupHosts(const Nodes& nodes,
                       const std::function<std::string(const NodeInfo&)>& text_of) {
  HostsByText groups;
  for (const AnsweredNode& node : nodes) {
    const std::string text = text_of(*node.info);
    if (!text.empty()) groups[text].push_back(node.info->host);
  }
  return groups;
}

std::vector<std::string> HostsOf(const HostsByText& groups) {
  std::vector<std::string> all;
  for (const auto& [what, hosts] : groups) all.insert(all.end(), hosts.begin(), hosts.end());
  return all;
}

std::string FirstOf(const std::vector<std::string>& parts) {
  constexpr std::size_t kMaxParts = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(parts.size(), kMaxParts); ++i) {
    text += (i == 0 ? "" : ", ") + parts[i];
  }
  if (parts.size() > kMaxParts) {
    text += " and " + std::to_string(parts.size() - kMaxParts) + " more";
  }
  return text;
}

std::string GroupsText(const HostsByText& groups) {
  std::vector<std::string> parts;
  for (const auto& [what, hosts] : groups) parts.push_back(what + " (" + HostsText(hosts) + ")");
  return FirstOf(parts);
}

std::string BytesText(long long bytes) {
  const auto number = static_cast<double>(bytes);
  if (bytes < 1LL << 20) return Decimal(number / 1024, 0) + " KiB";
  if (bytes < 1LL << 30) return Decimal(number / (1LL << 20), 0) + " MiB";
  return Decimal(number / (1LL << 30), bytes < 100LL << 30 ? 1 : 0) + " GiB";
}

std::string SecondsText(double seconds) {
  if (seconds >= 1) return Decimal(seconds, 1) + " s";
  return Decimal(seconds * 1e3, seconds < 0.01 ? 2 : 0) + " ms";
}

std::string CountText(std::size_t count, const std::string& noun) {
  return support::Counted(static_cast<long long>(count), noun);
}

}  // namespace launcher
