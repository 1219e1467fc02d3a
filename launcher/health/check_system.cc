// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstdlib>

#include "launcher/health/check_rules.h"

namespace launcher {
namespace {

std::string HardwareText(const NodeInfo& info) {
  std::string text = info.cpu_model + ", " + CountText(static_cast<std::size_t>(info.cpus), "CPU");
  if (info.nvidia_devices > 0) {
    text += ", " + CountText(static_cast<std::size_t>(info.nvidia_devices), "GPU");
  }
  std::vector<std::string> models;
  for (const GpuInfo& gpu : info.gpus) {
    if (gpu.model.empty() || std::count(models.begin(), models.end(), gpu.model) > 0) continue;
    models.push_back(gpu.model);
    text += " " + gpu.model;
  }
  return text;
}

std::size_t ActivePorts(const NodeInfo& info) {
  return static_cast<std::size_t>(
      std::count_if(info.ports.begin(), info.ports.end(),
                    [](const IbPortInfo& port) { return port.state == "ACTIVE"; }));
}

int FastestRate(const NodeInfo& info) {
  int fastest = 0;
  for (const IbPortInfo& port : info.ports) {
    if (port.state == "ACTIVE") fastest = std::max(fastest, port.rate_gbits);
  }
  return fastest;
}

std::string PortsText(const NodeInfo& info) {
  if (ActivePorts(info) == 0) return "no active port";
  return CountText(ActivePorts(info), "active port") + " at " + std::to_string(FastestRate(info)) +
         " Gbit/s";
}

}  // namespace

Verdict CheckHardware(const Nodes& nodes, const CheckedJob& job) {
  const HostsByText kinds = GroupHosts(nodes, HardwareText);
  const auto [min, max] = std::minmax_element(nodes.begin(), nodes.end(),
                                              [](const AnsweredNode& a, const AnsweredNode& b) {
                                                return a.info->memory_bytes < b.info->memory_bytes;
                                              });
  std::string seen = kinds.size() == 1 ? kinds.begin()->first : GroupsText(kinds);
  const bool same_memory =
      static_cast<double>(min->info->memory_bytes) >=
      (1 - job.limits.memory_difference) * static_cast<double>(max->info->memory_bytes);
  if (same_memory) {
    seen += ", " + BytesText(max->info->memory_bytes) + " of memory";
  } else {
    seen += ", " + BytesText(min->info->memory_bytes) + " of memory on " + min->info->host +
            " and " + BytesText(max->info->memory_bytes) + " on " + max->info->host;
  }
  const HostsByText systems = GroupHosts(
      nodes, [](const NodeInfo& info) { return info.system + ", kernel " + info.kernel; });
  seen += "; " + (systems.size() == 1 ? systems.begin()->first : GroupsText(systems));
  if (kinds.size() == 1 && same_memory) return {"hardware", Status::kOk, seen, ""};
  return {"hardware", Status::kWarn, "nodes differ: " + seen,
          "the job runs at the speed of the slowest; ask for one kind with sbatch --constraint"};
}

Verdict CheckInfiniband(const Nodes& nodes, const CheckedJob& /*job*/) {
  const std::string check = "infiniband";
  std::size_t max = 0;
  bool any_port = false;
  for (const AnsweredNode& node : nodes) {
    max = std::max(max, ActivePorts(*node.info));
    any_port = any_port || !node.info->ports.empty();
  }
  if (!any_port) return {check, Status::kOk, "no node has any: the job talks over TCP", ""};
  const std::string advice =
      "ibstat on the node says more; leave it out (sbatch --exclude) or talk over TCP (--tcp)";
  if (max == 0) {
    return {check, Status::kWarn, "no port is active on any node: the job talks over TCP", advice};
  }
  const HostsByText groups = GroupHosts(nodes, PortsText);
  const HostsByText without = GroupHosts(nodes, [](const NodeInfo& info) {
    return ActivePorts(info) == 0 ? PortsText(info) : std::string();
  });
  if (!without.empty()) {
    return {check, Status::kFail, GroupsText(groups), advice, HostsOf(without)};
  }
  if (groups.size() > 1) {
    return {check, Status::kWarn, GroupsText(groups),
            "the job runs at the speed of the slowest; " + advice};
  }
  return {check, Status::kOk, groups.begin()->first + " on every node", ""};
}

Verdict CheckMemlock(const Nodes& nodes, const CheckedJob& job) {
  const std::string check = "memlock";
  const HostsByText low = GroupHosts(nodes, [&job](const NodeInfo& info) -> std::string {
    const bool enough = info.memlock_bytes < 0 ||
                        static_cast<double>(info.memlock_bytes) >= job.limits.memlock_gib * kGib;
    return enough || ActivePorts(info) == 0 ? "" : BytesText(info.memlock_bytes);
  });
  if (!low.empty()) {
    return {check, Status::kFail, "InfiniBand needs locked memory, the limit is " + GroupsText(low),
            "'* - memlock unlimited' in /etc/security/limits.conf, LimitMEMLOCK=infinity for "
            "slurmd, PropagateResourceLimitsExcept=MEMLOCK in slurm.conf",
            HostsOf(low)};
  }
  const bool any_port = std::any_of(nodes.begin(), nodes.end(), [](const AnsweredNode& node) {
    return ActivePorts(*node.info) > 0;
  });
  return {check, Status::kOk,
          any_port ? "enough for InfiniBand" : "without InfiniBand the limit does not matter", ""};
}

Verdict CheckShm(const Nodes& nodes, const CheckedJob& job) {
  const std::string check = "shm";
  const HostsByText errors = GroupHosts(nodes, [](const NodeInfo& info) { return info.shm_error; });
  if (!errors.empty()) {
    return {check, Status::kFail, "nothing can be made in /dev/shm: " + GroupsText(errors),
            "ranks of a node meet there: mount a tmpfs with mode 1777", HostsOf(errors)};
  }
  const double wanted = job.limits.shm_gib * kGib;
  const HostsByText low = GroupHosts(nodes, [wanted](const NodeInfo& info) -> std::string {
    return static_cast<double>(info.shm_free_bytes) < wanted ? BytesText(info.shm_free_bytes) : "";
  });
  if (!low.empty()) {
    return {check, Status::kWarn, "little is free in /dev/shm: " + GroupsText(low),
            "NCCL wants " + BytesText(static_cast<long long>(wanted)) +
                "; remove what old jobs left there, or give the container as much by --shm-size"};
  }
  const auto min = std::min_element(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) {
    return a.info->shm_free_bytes < b.info->shm_free_bytes;
  });
  return {check, Status::kOk, BytesText(min->info->shm_free_bytes) + " free in /dev/shm", ""};
}

Verdict CheckUsers(const Nodes& nodes, const CheckedJob& /*job*/) {
  const std::string check = "users";
  const HostsByText open = GroupHosts(nodes, [](const NodeInfo& info) { return info.other_users; });
  if (!open.empty()) {
    std::string remedy;
    for (const auto& [text, hosts] : open) remedy += text;
    const bool has_directory = remedy.find("belongs to") != std::string::npos;
    const bool has_sysctl = remedy.find("is 0") != std::string::npos;
    return {check, Status::kWarn, GroupsText(open),
            std::string("other users could get in the way of MPI: the admin ") +
                (has_directory ? "removes the directory" : "") +
                (has_directory && has_sysctl ? " and " : "") +
                (has_sysctl ? "sets the sysctl to 1" : "")};
  }
  return {check, Status::kOk, "what other users make in /tmp and /dev/shm is not opened", ""};
}

Verdict CheckDirectory(const Nodes& nodes, const CheckedJob& job) {
  const std::string check = "directory";
  const std::string advice = "start from a directory that all nodes share and you may write";
  if (!job.directory_error.empty()) {
    return {check, Status::kFail, job.directory_error, advice};
  }
  const HostsByText errors =
      GroupHosts(nodes, [](const NodeInfo& info) { return info.directory.write_error; });
  const std::string& path = nodes.front().info->directory.path;
  if (!errors.empty()) {
    return {check, Status::kFail, path + " cannot be written: " + GroupsText(errors), advice,
            HostsOf(errors)};
  }
  const HostsByText foreign = GroupHosts(nodes, [](const NodeInfo& info) {
    return info.directory.is_shared ? std::string() : info.directory.path;
  });
  if (!foreign.empty()) {
    return {check, Status::kFail, "not the directory of ddlrun: " + GroupsText(foreign), advice,
            HostsOf(foreign)};
  }
  const auto min = std::min_element(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) {
    return a.info->directory.free_bytes < b.info->directory.free_bytes;
  });
  const long long free = min->info->directory.free_bytes;
  const std::string seen =
      path + " on " + CountText(nodes.size(), "node") + ", " + BytesText(free) + " free";
  if (static_cast<double>(free) < job.limits.directory_gib * kGib) {
    return {check, Status::kWarn, seen, "checkpoints may not fit; make room or start elsewhere"};
  }
  return {check, Status::kOk, seen, ""};
}

// It is no failure, since programs of MPI do not ask for the address.
Verdict CheckMaster(const Nodes& nodes, const CheckedJob& /*job*/) {
  const std::string check = "master-addr";
  const HostsByText problems =
      GroupHosts(nodes, [](const NodeInfo& info) { return info.master.problem; });
  const HostsByText unasked = GroupHosts(nodes, [](const NodeInfo& info) -> std::string {
    return info.master.address.empty() ? "was not looked up" : "";
  });
  std::string address;
  for (const AnsweredNode& node : nodes) address = std::max(address, node.info->master.address);
  const std::string name = address.empty() ? "MASTER_ADDR" : "MASTER_ADDR=" + address;
  if (!problems.empty()) {
    return {check, Status::kWarn, name + " is not found: " + GroupsText(problems),
            "ranks that meet there, of PyTorch for example, wait for ever; give an address that "
            "all nodes reach: -x MASTER_ADDR=ADDRESS"};
  }
  if (!unasked.empty()) {
    return {check, Status::kNotKnown, name + " " + GroupsText(unasked), "getent hosts on the node"};
  }
  const HostsByText loopbacks =
      GroupHosts(nodes, [](const NodeInfo& info) { return info.master.own_loopback; });
  if (nodes.size() > 1 && !loopbacks.empty()) {
    return {check, Status::kWarn, "nodes find their own names at " + GroupsText(loopbacks),
            "Gloo, and other programs that look up their own name, give that address to the "
            "others: -x GLOO_SOCKET_IFNAME=INTERFACE, or take the name out of /etc/hosts there"};
  }
  return {check, Status::kOk, name + " is found on " + CountText(nodes.size(), "node"), ""};
}

}  // namespace launcher
