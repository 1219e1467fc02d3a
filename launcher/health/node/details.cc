// SPDX-License-Identifier: Apache-2.0

#include "launcher/health/node/details.h"

#include <filesystem>
#include <set>
#include <sstream>
#include <system_error>

#include "launcher/health/node/kernel_text.h"
#include "launcher/health/node/sorted_entries.h"
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

}  // namespace launcher
