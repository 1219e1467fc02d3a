// SPDX-License-Identifier: Apache-2.0
//
// How much more memory of the host this process can have: the least of what the machine has left,
// what its control groups leave, and its own limit of address space.  What Slurm says that the job
// was granted is no limit: where the site holds jobs to it, it is that of a control group.

#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace trainer {

struct HostMemory {
  std::size_t bytes = 0;
  std::string origin;  // to be read behind "12 GB are": "left on this machine (MemAvailable)"
};

struct HostMemoryOptions {
  // Processes of this run on this node, which share all but the limit of address space.
  int processes = 1;
  std::filesystem::path file_system = "/";  // where /proc and /sys are
  std::size_t address_space_bytes = 0;      // that are left; 0: no limit
};

// The share of one process.  Files that are missing or in no known form limit nothing; if there is
// none at all, `bytes` is the largest number.
HostMemory FindHostMemory(const HostMemoryOptions& options);

// What RLIMIT_AS leaves of this process's address space; 0: no limit.
std::size_t AddressSpaceLeft();

// The path of the control group that accounts memory in the text of /proc/self/cgroup, and whether
// that is of version 2; the path is "" if there is none.
struct MemoryControlGroup {
  std::string path;
  bool is_version_2 = false;

  bool operator==(const MemoryControlGroup&) const = default;
};
MemoryControlGroup ParseControlGroup(std::string_view text);

}  // namespace trainer
