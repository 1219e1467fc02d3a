// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "launcher/health/check_rules.h"

namespace launcher {
namespace {

// "GPU 2", where `index` counts the GPUs of the job on the node.
std::string GpuText(std::size_t index) { return "GPU " + std::to_string(index); }

// The hosts by what `text_of` says of their GPUs: n2 by "GPU 1 has 5 errors".  A GPU with "" is
// left out.
HostsByText GroupGpus(const Nodes& nodes,
                      const std::function<std::string(const GpuInfo&)>& text_of) {
  return GroupHosts(nodes, [&text_of](const NodeInfo& info) {
    std::string text;
    for (std::size_t index = 0; index < info.gpus.size(); ++index) {
      const std::string fault = text_of(info.gpus[index]);
      if (fault.empty()) continue;
      text += (text.empty() ? "" : ", ") + GpuText(index) + " " + fault;
    }
    return text;
  });
}

std::size_t CountGpus(const Nodes& nodes) {
  std::size_t count = 0;
  for (const AnsweredNode& node : nodes) count += node.info->gpus.size();
  return count;
}

// Why a check that needs NVML cannot be done on some nodes; "" where all have it.
std::string WithoutNvml(const Nodes& nodes) {
  const HostsByText without = GroupHosts(nodes, [](const NodeInfo& info) {
    if (info.gpu_source == "NVML" || info.gpus.empty()) return std::string();
    return info.gpu_problem.empty() ? std::string("NVML is not installed") : info.gpu_problem;
  });
  return GroupsText(without);
}

Verdict NoGpus(const std::string& check) { return {check, Status::kOk, "no GPUs to look at", ""}; }

Verdict NeedsNvml(const std::string& check, const std::string& why) {
  return {check, Status::kNotKnown, why,
          "libnvidia-ml.so.1 comes with the driver; nvidia-smi on the node says more"};
}

std::string CountFault(const AnsweredNode& node) {
  const NodeInfo& info = *node.info;
  const auto seen = static_cast<int>(info.gpus.size());
  if (info.granted_gpus >= 0 && info.granted_gpus < node.planned_gpus) {
    return std::to_string(node.planned_gpus) + " planned, Slurm granted " +
           std::to_string(info.granted_gpus);
  }
  if (seen == 0 && !info.gpu_problem.empty()) {
    return std::to_string(node.planned_gpus) + " planned, but " + info.gpu_problem;
  }
  if (seen == 0 && info.nvidia_devices > 0) {
    return std::to_string(node.planned_gpus) + " planned, " +
           CountText(static_cast<std::size_t>(info.nvidia_devices), "device") +
           " on the PCI bus, but the driver shows none";
  }
  return std::to_string(node.planned_gpus) + " planned, " + std::to_string(seen) + " seen";
}

bool LacksGpus(const AnsweredNode& node) {
  return static_cast<int>(node.info->gpus.size()) < node.planned_gpus ||
         (node.info->granted_gpus >= 0 && node.info->granted_gpus < node.planned_gpus);
}

std::string UseFault(const GpuInfo& gpu) {
  if (gpu.processes.empty()) return "";
  std::string text = "used by";
  for (const GpuProcess& process : gpu.processes) {
    text += " pid " + std::to_string(process.pid);
    if (process.bytes >= 0) text += " (" + BytesText(process.bytes) + ")";
  }
  return text;
}

// For each model of GPU, the most active NVLinks that a GPU of it has.
std::map<std::string, int> MaxNvlinks(const Nodes& nodes) {
  std::map<std::string, int> max;
  for (const AnsweredNode& node : nodes) {
    for (const GpuInfo& gpu : node.info->gpus) {
      max[gpu.model] = std::max(max[gpu.model], gpu.nvlinks);
    }
  }
  return max;
}

}  // namespace

Verdict CheckGpuCount(const Nodes& nodes, const CheckedJob& /*job*/) {
  const std::string check = "gpus";
  int planned = 0;
  bool any_device = false;
  HostsByText faults;
  for (const AnsweredNode& node : nodes) {
    planned += node.planned_gpus;
    any_device = any_device || !node.info->gpus.empty() || node.info->nvidia_devices > 0 ||
                 !node.info->gpu_problem.empty();
    if (LacksGpus(node)) faults[CountFault(node)].push_back(node.info->host);
  }
  const bool granted_too_few = std::any_of(nodes.begin(), nodes.end(), [](const auto& node) {
    return node.info->granted_gpus >= 0 && node.info->granted_gpus < node.planned_gpus;
  });
  if (planned == 0) {
    return {check, Status::kOk, "none planned, " + std::to_string(CountGpus(nodes)) + " seen", ""};
  }
  if (!any_device && !granted_too_few) {
    return {check, Status::kNotKnown,
            std::to_string(planned) + " planned, but no node shows an NVIDIA device",
            "are these the GPUs you mean? nvidia-smi on a node, ls /dev/nvidia*"};
  }
  if (faults.empty()) {
    return {check, Status::kOk, std::to_string(planned) + " planned, all there", ""};
  }
  return {check, Status::kFail, GroupsText(faults),
          "nvidia-smi on the node says more, a driver that does not answer needs a reboot; ask for "
          "fewer (--accelerators) or leave the node out (sbatch --exclude)",
          HostsOf(faults)};
}

Verdict CheckGpuUse(const Nodes& nodes, const CheckedJob& /*job*/) {
  const std::string check = "gpu-use";
  if (CountGpus(nodes) == 0) return NoGpus(check);
  const HostsByText used = GroupGpus(nodes, UseFault);
  if (!used.empty()) {
    return {check, Status::kFail, GroupsText(used),
            "end these processes, or start with --check=auto to share the GPU", HostsOf(used)};
  }
  const std::string without = WithoutNvml(nodes);
  if (!without.empty()) return NeedsNvml(check, without);
  return {check, Status::kOk, CountText(CountGpus(nodes), "GPU") + " free", ""};
}

Verdict CheckGpuErrors(const Nodes& nodes, const CheckedJob& /*job*/) {
  const std::string check = "gpu-errors";
  if (CountGpus(nodes) == 0) return NoGpus(check);
  const HostsByText broken = GroupGpus(nodes, [](const GpuInfo& gpu) -> std::string {
    if (gpu.remap_failed) return "has bad memory that cannot be put out of use";
    if (gpu.uncorrected_errors <= 0) return "";
    return std::to_string(gpu.uncorrected_errors) + " uncorrected memory errors";
  });
  if (!broken.empty()) {
    return {check, Status::kFail, GroupsText(broken),
            "tell your admin to reset or replace the GPU; leave the node out (sbatch --exclude)",
            HostsOf(broken)};
  }
  const HostsByText pending = GroupGpus(nodes, [](const GpuInfo& gpu) -> std::string {
    return gpu.remap_pending ? "waits for a reset to put bad memory out of use" : "";
  });
  if (!pending.empty()) {
    return {check, Status::kWarn, GroupsText(pending), "tell your admin to reset the GPU"};
  }
  const std::string without = WithoutNvml(nodes);
  if (!without.empty()) return NeedsNvml(check, without);
  return {check, Status::kOk, "no memory errors", ""};
}

Verdict CheckGpuLinks(const Nodes& nodes, const CheckedJob& /*job*/) {
  const std::string check = "gpu-links";
  if (CountGpus(nodes) == 0) return NoGpus(check);
  const std::map<std::string, int> max = MaxNvlinks(nodes);
  const HostsByText faults = GroupGpus(nodes, [&max](const GpuInfo& gpu) -> std::string {
    if (gpu.nvlinks >= 0 && gpu.nvlinks < max.at(gpu.model)) {
      return std::to_string(gpu.nvlinks) + " of " + std::to_string(max.at(gpu.model)) +
             " NVLinks active";
    }
    if (gpu.pcie_lanes > 0 && gpu.pcie_lanes < gpu.pcie_lanes_max) {
      return std::to_string(gpu.pcie_lanes) + " of " + std::to_string(gpu.pcie_lanes_max) +
             " PCIe lanes";
    }
    return "";
  });
  if (!faults.empty()) {
    return {check, Status::kWarn, GroupsText(faults),
            "the whole job runs at the speed of that GPU; nvidia-smi nvlink -s, or leave the node "
            "out (sbatch --exclude)"};
  }
  const std::string without = WithoutNvml(nodes);
  if (!without.empty()) return NeedsNvml(check, without);
  return {check, Status::kOk, "NVLink and PCIe at full width", ""};
}

}  // namespace launcher
