// SPDX-License-Identifier: Apache-2.0

#include "trainer/core/host_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <sstream>

namespace trainer {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

std::optional<std::string> ReadText(const fs::path& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// The number that a file consists of; "max" is none.
std::optional<std::size_t> ReadNumber(const fs::path& path) {
  std::ifstream file(path);
  std::size_t number = 0;
  if (!(file >> number)) return std::nullopt;
  return number;
}

// The number behind `name` in lines of "NAME NUMBER ...".
std::optional<std::size_t> NumberOf(const std::string& name, const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    std::size_t number = 0;
    if (words >> word >> number && word == name) return number;
  }
  return std::nullopt;
}

// Names of the files and of what the kernel gives back when memory is short.
struct GroupFiles {
  fs::path mount;
  const char* limit;
  const char* usage;
  std::array<const char*, 2> reclaimable;
};

// What one group leaves; nothing if it has no limit.
std::optional<std::size_t> LeftInGroup(const fs::path& group, const GroupFiles& files) {
  const auto limit = ReadNumber(group / files.limit);
  const auto usage = ReadNumber(group / files.usage);
  if (!limit || !usage) return std::nullopt;
  const std::string statistics = ReadText(group / "memory.stat").value_or("");
  std::size_t reclaimable = 0;
  for (const char* name : files.reclaimable) reclaimable += NumberOf(name, statistics).value_or(0);
  const std::size_t held = *usage - std::min(*usage, reclaimable);
  return *limit - std::min(*limit, held);
}

void Lower(HostMemory& memory, std::size_t bytes, const std::string& origin) {
  if (bytes < memory.bytes) memory = {bytes, origin};
}

// The group and all above it, as far as this process sees them.
void LowerToGroups(HostMemory& memory, const fs::path& file_system) {
  const auto text = ReadText(file_system / "proc/self/cgroup");
  if (!text) return;
  const MemoryControlGroup own = ParseControlGroup(*text);
  if (own.path.empty()) return;
  const GroupFiles files = own.is_version_2
                               ? GroupFiles{file_system / "sys/fs/cgroup",
                                            "memory.max",
                                            "memory.current",
                                            {"inactive_file", "active_file"}}
                               : GroupFiles{file_system / "sys/fs/cgroup/memory",
                                            "memory.limit_in_bytes",
                                            "memory.usage_in_bytes",
                                            {"total_inactive_file", "total_active_file"}};
  for (fs::path path = own.path;; path = path.parent_path()) {
    const fs::path group = files.mount / path.relative_path();
    if (const auto left = LeftInGroup(group, files)) {
      Lower(memory, *left, "left in the control group " + path.string());
    }
    if (path == path.parent_path()) return;
  }
}

}  // namespace

MemoryControlGroup ParseControlGroup(std::string_view text) {
  MemoryControlGroup version_2;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    // "4:memory:/slurm/uid_1000/job_7", "0::/system.slice"
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    if (!path.starts_with('/')) continue;
    if (controllers.find(",memory,") != std::string::npos) return {path, false};
    if (controllers == ",,") version_2 = {path, true};
  }
  return version_2;
}

std::size_t AddressSpaceLeft() {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return 0;
  const std::size_t pages = ReadNumber("/proc/self/statm").value_or(0);
  const std::size_t used = pages * static_cast<std::size_t>(::sysconf(_SC_PAGE_SIZE));
  return std::max<std::size_t>(1, limit.rlim_cur - std::min<std::size_t>(limit.rlim_cur, used));
}

HostMemory FindHostMemory(const HostMemoryOptions& options) {
  HostMemory memory{kNoLimit, ""};
  if (const auto text = ReadText(options.file_system / "proc/meminfo")) {
    if (const auto kibibytes = NumberOf("MemAvailable:", *text)) {
      Lower(memory, *kibibytes * 1024, "left on this machine (MemAvailable)");
    }
  }
  LowerToGroups(memory, options.file_system);
  if (memory.bytes != kNoLimit && options.processes > 1) {
    memory.bytes /= static_cast<std::size_t>(options.processes);
    memory.origin = "its share of what is " + memory.origin;
  }
  if (options.address_space_bytes > 0) {
    Lower(memory, options.address_space_bytes, "left of its address space (ulimit -v)");
  }
  return memory;
}

}  // namespace trainer
