// SPDX-License-Identifier: Apache-2.0

#include "launcher/health/node/gpu_info.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "launcher/allocation/visible_gpus.h"
#include "launcher/health/node/nvml.h"
#include "launcher/health/node/system_info.h"
#include "launcher/topology/driver_gpus.h"
#include "support/descriptor.h"

namespace launcher {
namespace {

namespace fs = std::filesystem;

std::vector<FoundGpu> ReadProc(const std::string& root) {
  std::vector<FoundGpu> gpus;
  for (const DriverGpu& seen : ReadDriverGpus(root)) {
    FoundGpu& gpu = gpus.emplace_back();
    gpu.info.pci_bus_id = seen.pci_bus_id;
    gpu.info.model = seen.model;
    gpu.uuid = seen.uuid;
  }
  return gpus;
}

// /dev/nvidia0, /dev/nvidia1, ...
std::vector<FoundGpu> ReadDevices(const fs::path& directory) {
  const std::string start = "nvidia";
  std::vector<FoundGpu> gpus;
  for (const fs::path& entry : SortedEntries(directory)) {
    const std::string name = entry.filename().string();
    if (name.size() > start.size() && name.starts_with(start) &&
        name.find_first_not_of("0123456789", start.size()) == std::string::npos) {
      gpus.emplace_back();
    }
  }
  return gpus;
}

// "" when an IMEX channel can be opened, as CUDA does to export memory to other nodes: the device
// files, their permissions and the control group of devices must let this user do so.
// https://docs.nvidia.com/multi-node-nvlink-systems/imex-guide/imexchannels.html
std::string ImexProblem(const fs::path& dev) {
  const fs::path directory = dev / "nvidia-caps-imex-channels";
  std::string problem = "there is no /dev/nvidia-caps-imex-channels/channel*";
  for (const fs::path& entry : SortedEntries(directory)) {
    const std::string name = entry.filename().string();
    if (!name.starts_with("channel")) continue;
    const support::Descriptor channel(open(entry.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (channel.is_open()) return "";
    problem = "/dev/nvidia-caps-imex-channels/" + name + ": " + std::strerror(errno);
  }
  return problem;
}

}  // namespace

void ReadGpuInfo(const GpuQuery& sources, NodeInfo& info) {
  const fs::path root = sources.root.empty() ? "/" : sources.root;
  std::vector<FoundGpu> found = ReadNvml(sources.nvml, info.gpu_problem);
  info.gpu_source = "NVML";
  if (found.empty()) {
    found = ReadProc(sources.root);
    info.gpu_source = "/proc";
  }
  if (found.empty()) {
    found = ReadDevices(root / "dev");
    info.gpu_source = found.empty() ? "" : "/dev";
  }
  info.imex_problem = ImexProblem(root / "dev");
  std::vector<std::string> uuids;
  for (const FoundGpu& gpu : found) uuids.push_back(gpu.uuid);
  info.gpus.clear();
  if (sources.all_visible) {
    for (const FoundGpu& gpu : found) info.gpus.push_back(gpu.info);
    return;
  }
  for (const int index : VisibleGpus(sources.visible, uuids)) {
    const bool is_known = index >= 0;
    info.gpus.push_back(is_known ? found[static_cast<std::size_t>(index)].info : GpuInfo());
  }
}

}  // namespace launcher
