// SPDX-License-Identifier: Apache-2.0

#include "launcher/health/node/gpu_details.h"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "launcher/health/node/kernel_text.h"
#include "launcher/health/node/nvml.h"

namespace launcher {
namespace {

constexpr int kNvlinkStatus = 2;  // nvmlGpuP2PCapsIndex_t: NVML_P2P_CAPS_INDEX_NVLINK
// nvmlClocksThrottleReasons
constexpr unsigned long long kSlowedByHardware = 0x8;
constexpr unsigned long long kSlowedByHeat = 0x20 | 0x40;
constexpr unsigned long long kSlowedByPower = 0x80;

struct MemoryInfo {  // nvmlMemory_t
  unsigned long long total, free, used;
};

template <typename Function>
Function FindFunction(const std::vector<const char*>& libraries, const char* name) {
  for (const char* library : libraries) {
    void* handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
    if (handle == nullptr) continue;
    if (void* found = dlsym(handle, name)) return reinterpret_cast<Function>(found);
  }
  return nullptr;
}

// "/sys/bus/pci/devices" has "0004:04:00.0" where NVML says "00000004:04:00.0".
std::string DirectoryOfPci(const std::string& pci_bus_id) {
  constexpr std::size_t kLength = 12;
  std::string name =
      pci_bus_id.size() > kLength ? pci_bus_id.substr(pci_bus_id.size() - kLength) : pci_bus_id;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return name;
}

// The devices of NVML by the directories of their PCI ids.
std::map<std::string, NvmlDevice> DevicesByPci(const NvmlLibrary& nvml) {
  std::map<std::string, NvmlDevice> devices;
  unsigned count = 0;
  nvml.Call("nvmlDeviceGetCount_v2", &count);
  for (unsigned index = 0; index < count; ++index) {
    NvmlDevice device = nullptr;
    NvmlPciInfo pci = {};
    if (nvml.Call("nvmlDeviceGetHandleByIndex_v2", index, &device) &&
        nvml.Call("nvmlDeviceGetPciInfo_v3", device, &pci)) {
      devices[DirectoryOfPci(pci.bus_id.data())] = device;
    }
  }
  return devices;
}

std::string DeviceText(const NvmlLibrary& nvml, NvmlDevice device) {
  std::string text;
  MemoryInfo memory = {};
  if (nvml.Call("nvmlDeviceGetMemoryInfo", device, &memory)) {
    text += ", " + std::to_string(memory.total >> 20) + " MiB";
  }
  unsigned milliwatts = 0;
  if (nvml.Call("nvmlDeviceGetEnforcedPowerLimit", device, &milliwatts)) {
    text += ", " + std::to_string(milliwatts / 1000) + " W at most";
  }
  unsigned long long reasons = 0;
  if (nvml.Call("nvmlDeviceGetCurrentClocksThrottleReasons", device, &reasons)) {
    if ((reasons & kSlowedByHeat) != 0) text += ", slowed down by heat";
    if ((reasons & kSlowedByPower) != 0) text += ", slowed down by its power supply";
    if ((reasons & (kSlowedByHardware | kSlowedByHeat | kSlowedByPower)) == kSlowedByHardware) {
      text += ", slowed down by its hardware";
    }
  }
  return text;
}

// nvmlGpuTopologyLevel_t
std::string LevelText(int level) {
  if (level == 0) return "on one board";
  if (level == 10) return "by one PCIe switch";
  if (level == 20) return "by PCIe switches";
  if (level == 30) return "by one host bridge";
  if (level == 40) return "within a NUMA node";
  return level == 50 ? "between NUMA nodes" : "by level " + std::to_string(level);
}

std::string ConnectionText(const NvmlLibrary& nvml, NvmlDevice one, NvmlDevice other) {
  int status = -1;
  int level = -1;
  if (nvml.Call("nvmlDeviceGetP2PStatus", one, other, kNvlinkStatus, &status) && status == 0) {
    return "NVLink";
  }
  return nvml.Call("nvmlDeviceGetTopologyCommonAncestor", one, other, &level) ? LevelText(level)
                                                                              : "";
}

}  // namespace

std::string NcclVersionText(int version) {
  // From 2.9 on there are two digits for each of the last two numbers.
  const int major = version >= 10000 ? version / 10000 : version / 1000;
  const int minor = version >= 10000 ? version / 100 % 100 : version / 100 % 10;
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(version % 100);
}

std::string CudnnVersionText(std::size_t version) {
  // From 9 on there are two digits for the second number.
  const std::size_t unit = version >= 90000 ? 10000 : 1000;
  return std::to_string(version / unit) + "." + std::to_string(version % unit / 100) + "." +
         std::to_string(version % 100);
}

void ReadGpuLibraries(const std::string& nvml_name, const std::string& root, Details& details) {
  std::string driver;
  int cuda = 0;
  const NvmlLibrary nvml(nvml_name);
  if (nvml.is_open() && nvml.Call("nvmlInit_v2")) {
    std::array<char, 96> text = {};
    if (nvml.Call("nvmlSystemGetDriverVersion", text.data(), static_cast<unsigned>(text.size()))) {
      driver = text.data();
    }
    if (nvml.Call("nvmlSystemGetCudaDriverVersion_v2", &cuda)) {
      driver +=
          ", CUDA up to " + std::to_string(cuda / 1000) + "." + std::to_string(cuda % 1000 / 10);
    }
    nvml.Call("nvmlShutdown");
  }
  if (driver.empty()) {
    // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 ..."
    driver =
        ValueOf((root.empty() ? "/" : root) + "/proc/driver/nvidia/version", "NVRM version", ':');
  }
  AddDetail("NVIDIA driver", driver, details);
  int nccl = 0;
  const auto nccl_version = FindFunction<int (*)(int*)>({"libnccl.so.2"}, "ncclGetVersion");
  if (nccl_version != nullptr && nccl_version(&nccl) == 0) {
    AddDetail("NCCL", NcclVersionText(nccl), details);
  }
  const auto cudnn_version = FindFunction<std::size_t (*)()>(
      {"libcudnn.so.9", "libcudnn.so.8", "libcudnn.so.7"}, "cudnnGetVersion");
  if (cudnn_version != nullptr) AddDetail("cuDNN", CudnnVersionText(cudnn_version()), details);
}

void ReadGpuPlaces(const std::string& nvml_name, const std::string& root,
                   const std::vector<GpuInfo>& gpus, Details& details) {
  const NvmlLibrary nvml(nvml_name);
  const bool is_open = nvml.is_open() && nvml.Call("nvmlInit_v2");
  const std::map<std::string, NvmlDevice> devices =
      is_open ? DevicesByPci(nvml) : std::map<std::string, NvmlDevice>();
  std::map<std::string, std::string> pairs;  // "0-1, 2-3" by how they are connected
  std::size_t kinds = 0;
  for (std::size_t index = 0; index < gpus.size(); ++index) {
    const std::string directory = DirectoryOfPci(gpus[index].pci_bus_id);
    if (directory.empty()) continue;
    const auto device = devices.find(directory);
    AddDetail("GPU " + std::to_string(index),
              "PCI " + directory + PlaceOf(root + "/sys/bus/pci/devices/" + directory) +
                  (device == devices.end() ? "" : DeviceText(nvml, device->second)),
              details);
    for (std::size_t other = index + 1; device != devices.end() && other < gpus.size(); ++other) {
      const auto found = devices.find(DirectoryOfPci(gpus[other].pci_bus_id));
      if (found == devices.end()) continue;
      const std::string how = ConnectionText(nvml, device->second, found->second);
      std::string& listed = pairs[how];
      if (listed.empty()) ++kinds;
      listed += (listed.empty() ? "" : ", ") + std::to_string(index) + "-" + std::to_string(other);
    }
  }
  std::string text;
  for (const auto& [how, listed] : pairs) {
    if (how.empty()) continue;
    text += (text.empty() ? "" : "; ") + how + ": " + (kinds == 1 ? "all" : listed);
  }
  AddDetail("pairs of GPUs", text, details);
  if (is_open) nvml.Call("nvmlShutdown");
}

}  // namespace launcher
