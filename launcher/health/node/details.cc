// SPDX-License-Identifier: Apache-2.0

#include "launcher/health/node/details.h"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <climits>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <system_error>

#include "launcher/health/node/nvml.h"
#include "launcher/health/node/system_info.h"
#include "support/cpu_quota.h"
#include "support/number.h"

namespace launcher {
namespace {

namespace fs = std::filesystem;

fs::path BaseOf(const std::string& root) { return root.empty() ? fs::path("/") : fs::path(root); }

// "536870912 kB" -> "512.0 GiB".
std::string GibibytesOf(const std::string& kibibytes) {
  const auto count =
      support::WholeNumber<long long>(kibibytes.substr(0, kibibytes.find(' '))).value_or(-1);
  if (count < 0) return "";
  const long long tenths = count * 10 / (1LL << 20);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GiB";
}

// node0, node8, node255: those of GPUs have no CPUs.
void ReadNuma(const fs::path& nodes, Details& details) {
  for (const fs::path& directory : SortedEntries(nodes)) {
    const std::string name = directory.filename().string();
    const std::string number = name.substr(std::min<std::size_t>(4, name.size()));
    if (!name.starts_with("node") || !support::WholeNumber<int>(number)) continue;
    const std::string cpus = FirstLine(directory / "cpulist");
    const std::string memory =
        GibibytesOf(ValueOf(directory / "meminfo", "Node " + number + " MemTotal", ':'));
    AddDetail("NUMA node " + number, (cpus.empty() ? "no CPUs" : "CPUs " + cpus) + ", " + memory,
              details);
  }
}

// "always [madvise] never" -> "madvise".
std::string Chosen(const std::string& text) {
  const std::size_t open = text.find('[');
  const std::size_t close = text.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return text;
  return text.substr(open + 1, close - open - 1);
}

// Those through which ranks reach GPUs, adapters and each other's memory.
std::string ReadModules(const fs::path& modules) {
  static const std::set<std::string> wanted = {
      "gdrdrv",      "ib_ipoib", "ib_umad",   "ib_uverbs",      "knem",       "mlx4_ib",  "mlx5_ib",
      "nv_peer_mem", "nvidia",   "nvidia_fs", "nvidia_peermem", "nvidia_uvm", "rdma_ucm", "xpmem"};
  std::string text;
  for (const std::string& name : wanted) {
    std::error_code error;
    if (fs::exists(modules / name, error)) text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

std::string WithUnit(const std::string& number, const std::string& unit) {
  return number.empty() ? "" : number + unit;
}

std::string InterfaceText(const fs::path& directory) {
  std::string text = FirstLine(directory / "operstate");
  // The kernel says -1, or refuses to be read, where an interface has no speed.
  const std::string speed = FirstLine(directory / "speed");
  if (support::WholeNumber<int>(speed).value_or(-1) > 0) text += ", " + speed + " Mbit/s";
  text += WithUnit(FirstLine(directory / "mtu"), " bytes at most").insert(0, ", ");
  std::error_code error;
  const fs::path driver = fs::read_symlink(directory / "device/driver", error);
  text += error ? ", virtual" : ", " + driver.filename().string();
  return text + PlaceOf((directory / "device").string());
}

}  // namespace

void AddDetail(const std::string& name, const std::string& text, Details& details) {
  if (!text.empty()) details.push_back({name, text});
}

std::string PlaceOf(const std::string& device_directory) {
  const std::string node = FirstLine(fs::path(device_directory) / "numa_node");
  const bool is_known = support::WholeNumber<int>(node).value_or(-1) >= 0;
  return is_known ? " at NUMA node " + node : "";
}

void ReadMachineDetails(const std::string& root, Details& details) {
  const fs::path base = BaseOf(root);
  const fs::path system = base / "sys/devices/system";
  ReadNuma(system / "node", details);
  AddDetail("CPUs of this job", ValueOf(base / "proc/self/status", "Cpus_allowed_list", ':'),
            details);
  const std::string threads = FirstLine(system / "cpu/smt/active");
  AddDetail("SMT", threads == "1" ? "on" : threads == "0" ? "off" : "", details);
  AddDetail("CPU governor", FirstLine(system / "cpu/cpu0/cpufreq/scaling_governor"), details);
  AddDetail("huge pages", Chosen(FirstLine(base / "sys/kernel/mm/transparent_hugepage/enabled")),
            details);
  const fs::path kernel = base / "proc/sys/kernel";
  AddDetail("NUMA balancing", FirstLine(kernel / "numa_balancing"), details);
  AddDetail("ptrace_scope", FirstLine(kernel / "yama/ptrace_scope"), details);
  AddDetail("kernel modules", ReadModules(base / "sys/module"), details);
}

void ReadNetworkDetails(const std::string& root, Details& details) {
  const fs::path base = BaseOf(root);
  for (const fs::path& directory : SortedEntries(base / "sys/class/net")) {
    const std::string name = directory.filename().string();
    // Those of containers have names by chance.
    if (name == "lo" || name.starts_with("veth")) continue;
    std::error_code error;
    if (!fs::is_directory(directory, error)) continue;
    AddDetail("network " + name, InterfaceText(directory), details);
  }
  for (const fs::path& directory : SortedEntries(base / "sys/class/infiniband")) {
    std::string text = WithUnit(FirstLine(directory / "fw_ver"), "");
    if (!text.empty()) text.insert(0, "firmware ");
    const std::string board = FirstLine(directory / "board_id");
    if (!board.empty()) text += (text.empty() ? "board " : ", board ") + board;
    AddDetail("adapter " + directory.filename().string(),
              text + PlaceOf((directory / "device").string()), details);
  }
}

namespace {

// "Max open files            1024                 4096                 files     "
void ReadProcessLimits(const fs::path& limits, Details& details) {
  constexpr std::size_t kNameWidth = 25;
  std::ifstream file(limits);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("Max ") || line.size() <= kNameWidth) continue;
    const std::string name = Trimmed(line.substr(4, kNameWidth - 4));
    std::istringstream words(line.substr(kNameWidth));
    std::string soft;
    std::string hard;
    std::string unit;
    words >> soft >> hard >> unit;
    if (name != "open files" && name != "processes" && name != "locked memory" &&
        name != "stack size" && name != "core file size" && name != "address space" &&
        name != "file size") {
      continue;
    }
    const std::string with_unit = unit == "bytes" && soft != "unlimited" ? " bytes" : "";
    AddDetail("limit of " + name,
              soft + with_unit + (hard == soft ? "" : ", " + hard + " if raised"), details);
  }
}

struct ControlGroup {
  fs::path mount;
  fs::path path;  // below it
};

// The group that has `controller`: of version 1, else of version 2.
std::optional<ControlGroup> FindGroup(const fs::path& base, const std::string& controller) {
  std::optional<ControlGroup> of_version_2;
  std::ifstream file(base / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    std::string path = line.substr(second + 1);
    // Outside of what this container sees.
    if (path.starts_with("/..")) path = "/";
    path.erase(0, path.find_first_not_of('/'));
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const fs::path mounts = base / "sys/fs/cgroup";
    if (controllers.find("," + controller + ",") != std::string::npos) {
      return ControlGroup{mounts / controller, path};
    }
    if (controllers == ",,") of_version_2 = ControlGroup{mounts, path};
  }
  return of_version_2;
}

// The least number in a file of this name, of the group and of those above it; nullopt where none
// is limited.
std::optional<long long> MinOfGroups(const ControlGroup& group, const std::string& name) {
  // Version 1 says "no limit" by the largest number of whole pages.
  constexpr long long kNoLimit = LLONG_MAX / 2;
  std::optional<long long> min;
  for (fs::path path = group.path;; path = path.parent_path()) {
    const auto number = support::WholeNumber<long long>(FirstLine(group.mount / path / name));
    if (number && *number < std::min(min.value_or(kNoLimit), kNoLimit)) min = number;
    if (path.empty()) return min;
  }
}

std::string GroupLimit(const fs::path& base, const std::string& controller,
                       const std::vector<std::string>& names) {
  const std::optional<ControlGroup> group = FindGroup(base, controller);
  if (!group) return "";
  for (const std::string& name : names) {
    if (const auto min = MinOfGroups(*group, name)) return std::to_string(*min);
  }
  return "none";
}

}  // namespace

void ReadLimitDetails(const std::string& root, Details& details) {
  const fs::path base = root.empty() ? fs::path("/") : fs::path(root);
  ReadProcessLimits(base / "proc/self/limits", details);
  const int quota = support::ThreadsWithinQuota(root.c_str(), INT_MAX, 1);
  AddDetail("control group's CPUs", quota == INT_MAX ? "no quota" : std::to_string(quota), details);
  const std::string memory = GroupLimit(base, "memory", {"memory.max", "memory.limit_in_bytes"});
  AddDetail("control group's memory", memory + (memory.empty() || memory == "none" ? "" : " bytes"),
            details);
  AddDetail("control group's processes", GroupLimit(base, "pids", {"pids.max"}), details);
}

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
