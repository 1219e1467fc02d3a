// SPDX-License-Identifier: Apache-2.0

#include <climits>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "launcher/health/node/details.h"
#include "launcher/health/node/kernel_text.h"
#include "support/cpu_quota.h"
#include "support/number.h"

namespace launcher {
namespace {

namespace fs = std::filesystem;

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
