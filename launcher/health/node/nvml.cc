// SPDX-License-Identifier: Apache-2.0

#include "launcher/health/node/nvml.h"

#include <algorithm>

namespace launcher {
namespace {

using Device = NvmlDevice;
using Return = NvmlReturn;
using PciInfo = NvmlPciInfo;
using Library = NvmlLibrary;
constexpr Return kSuccess = kNvmlSuccess;
constexpr Return kInsufficientSize = 7;
constexpr int kUncorrected = 1;  // nvmlMemoryErrorType_t
constexpr int kVolatile = 0;     // nvmlEccCounterType_t: since the driver was loaded
constexpr unsigned kMaxLinks = 18;
constexpr unsigned long long kNotAvailable = ~0ULL;

struct ProcessInfo {  // nvmlProcessInfo_v2_t, of _v2 and _v3 of the function
  unsigned pid;
  unsigned long long used_memory;
  unsigned gpu_instance, compute_instance;
};

struct FabricInfo {  // nvmlGpuFabricInfo_v2_t, of CUDA 12.4 on
  unsigned version;
  std::array<unsigned char, 16> cluster_uuid;
  Return status;
  unsigned clique;
  unsigned char state;
  unsigned health_mask;
};
static_assert(sizeof(FabricInfo) == 36);
constexpr unsigned kFabricInfoVersion = sizeof(FabricInfo) | 2U << 24;  // NVML_STRUCT_VERSION
constexpr unsigned char kFabricCompleted = 3;  // NVML_GPU_FABRIC_STATE_COMPLETED

std::vector<GpuProcess> ReadProcesses(const Library& nvml, Device device) {
  constexpr std::size_t kMax = 64;  // more processes of one GPU are left out
  std::array<ProcessInfo, kMax> found = {};
  for (const char* name :
       {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"}) {
    auto count = static_cast<unsigned>(found.size());
    const Return result = nvml.Result(name, device, &count, found.data());
    if (result != kSuccess && result != kInsufficientSize) continue;
    std::vector<GpuProcess> processes;
    for (std::size_t i = 0; i < std::min<std::size_t>(count, kMax); ++i) {
      GpuProcess& process = processes.emplace_back();
      process.pid = found[i].pid;
      if (found[i].used_memory != kNotAvailable) {
        process.bytes = static_cast<long long>(found[i].used_memory);
      }
    }
    return processes;
  }
  return {};
}

int CountActiveNvlinks(const Library& nvml, Device device) {
  int active = -1;
  for (unsigned link = 0; link < kMaxLinks; ++link) {
    int is_active = 0;
    if (!nvml.Call("nvmlDeviceGetNvLinkState", device, link, &is_active)) continue;
    active = std::max(active, 0) + (is_active != 0 ? 1 : 0);
  }
  return active;
}

// Of GPUs whose NVSwitches stay inside the node (HGX) the UUID is zero, or no other node has it.
std::string ReadNvlinkDomain(const Library& nvml, Device device) {
  FabricInfo info = {};
  info.version = kFabricInfoVersion;
  if (!nvml.Call("nvmlDeviceGetGpuFabricInfoV", device, &info)) return "";
  const bool is_zero = std::all_of(info.cluster_uuid.begin(), info.cluster_uuid.end(),
                                   [](unsigned char byte) { return byte == 0; });
  if (info.state != kFabricCompleted || info.status != kSuccess || is_zero) return "";
  std::string domain;
  for (const unsigned char byte : info.cluster_uuid) {
    constexpr char kDigits[] = "0123456789abcdef";
    domain += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return domain + "." + std::to_string(info.clique);
}

void ReadErrors(const Library& nvml, Device device, GpuInfo& info) {
  unsigned long long errors = 0;
  if (nvml.Call("nvmlDeviceGetTotalEccErrors", device, kUncorrected, kVolatile, &errors)) {
    info.uncorrected_errors = static_cast<long long>(errors);
  }
  // GPUs from Ampere on remap rows of bad memory, earlier ones retire pages.
  unsigned corrected = 0;
  unsigned uncorrected = 0;
  unsigned pending = 0;
  unsigned failed = 0;
  if (nvml.Call("nvmlDeviceGetRemappedRows", device, &corrected, &uncorrected, &pending, &failed)) {
    info.remap_pending = pending != 0;
    info.remap_failed = failed != 0;
  }
  int is_pending = 0;
  if (nvml.Call("nvmlDeviceGetRetiredPagesPendingStatus", device, &is_pending)) {
    info.remap_pending = info.remap_pending || is_pending != 0;
  }
}

FoundGpu ReadGpu(const Library& nvml, Device device) {
  FoundGpu gpu;
  std::array<char, 96> text = {};
  if (nvml.Call("nvmlDeviceGetName", device, text.data(), static_cast<unsigned>(text.size()))) {
    gpu.info.model = text.data();
  }
  if (nvml.Call("nvmlDeviceGetUUID", device, text.data(), static_cast<unsigned>(text.size()))) {
    gpu.uuid = text.data();
  }
  PciInfo pci = {};
  if (nvml.Call("nvmlDeviceGetPciInfo_v3", device, &pci)) gpu.info.pci_bus_id = pci.bus_id.data();
  unsigned lanes = 0;
  if (nvml.Call("nvmlDeviceGetCurrPcieLinkWidth", device, &lanes)) {
    gpu.info.pcie_lanes = static_cast<int>(lanes);
  }
  if (nvml.Call("nvmlDeviceGetMaxPcieLinkWidth", device, &lanes)) {
    gpu.info.pcie_lanes_max = static_cast<int>(lanes);
  }
  gpu.info.nvlink_domain = ReadNvlinkDomain(nvml, device);
  gpu.info.nvlinks = CountActiveNvlinks(nvml, device);
  gpu.info.processes = ReadProcesses(nvml, device);
  ReadErrors(nvml, device, gpu.info);
  return gpu;
}

}  // namespace

std::vector<FoundGpu> ReadNvml(const std::string& library, std::string& problem) {
  const Library nvml(library);
  if (!nvml.is_open()) return {};
  const Return started = nvml.Result("nvmlInit_v2");
  if (started != kSuccess) {
    problem = "NVML: " + nvml.ErrorText(started);
    return {};
  }
  unsigned count = 0;
  const Return counted = nvml.Result("nvmlDeviceGetCount_v2", &count);
  if (counted != kSuccess) problem = "NVML: " + nvml.ErrorText(counted);
  std::vector<FoundGpu> gpus;
  for (unsigned index = 0; counted == kSuccess && index < count; ++index) {
    Device device = nullptr;
    const Return found = nvml.Result("nvmlDeviceGetHandleByIndex_v2", index, &device);
    if (found != kSuccess) {
      // This GPU fell off the bus.  It still counts for the numbers in CUDA_VISIBLE_DEVICES of the
      // GPUs after it, so that the list of NVML without it would be wrong.
      problem = "NVML: GPU " + std::to_string(index) + ": " + nvml.ErrorText(found);
      gpus.clear();
      break;
    }
    gpus.push_back(ReadGpu(nvml, device));
  }
  nvml.Call("nvmlShutdown");
  return gpus;
}

}  // namespace launcher
