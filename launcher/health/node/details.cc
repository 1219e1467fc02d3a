// SPDX-License-Identifier: Apache-2.0

#include "launcher/health/node/details.h"

#include <climits>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <system_error>

#include "launcher/health/node/kernel_text.h"
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

}  // namespace launcher
