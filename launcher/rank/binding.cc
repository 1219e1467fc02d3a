// SPDX-License-Identifier: Apache-2.0

#include "launcher/rank/binding.h"

#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <memory>
#include <string>

#include "launcher/error.h"

namespace launcher {
namespace {

struct FreeCpuSet {
  void operator()(cpu_set_t* set) const { CPU_FREE(set); }
};

LaunchError CannotBind(const std::string& reason) {
  return LaunchError(EX_CONFIG, "cannot bind: " + reason +
                                    "; the nodes differ from the plan, start with --bind=none");
}

}  // namespace

void BindCpus(const std::vector<int>& cpus) {
  const auto count = static_cast<std::size_t>(*std::max_element(cpus.begin(), cpus.end())) + 1;
  // The kernel refuses to read into a set smaller than its own; no machine has more CPUs than this.
  const std::size_t capacity = std::max<std::size_t>(count, 8192);
  const std::size_t bytes = CPU_ALLOC_SIZE(capacity);
  const std::unique_ptr<cpu_set_t, FreeCpuSet> wanted(CPU_ALLOC(capacity));
  const std::unique_ptr<cpu_set_t, FreeCpuSet> bound(CPU_ALLOC(capacity));
  CPU_ZERO_S(bytes, wanted.get());
  CPU_ZERO_S(bytes, bound.get());
  for (const int cpu : cpus) CPU_SET_S(static_cast<std::size_t>(cpu), bytes, wanted.get());
  if (sched_setaffinity(0, bytes, wanted.get()) != 0 ||
      sched_getaffinity(0, bytes, bound.get()) != 0) {
    throw CannotBind(std::string("none of the planned CPUs can be used (") + std::strerror(errno) +
                     ")");
  }
  for (const int cpu : cpus) {
    if (!CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes, bound.get())) {
      throw CannotBind("CPU " + std::to_string(cpu) + " is not there or not given to this job");
    }
  }
}

void PreferMemoryOf(int os_index) {
  constexpr std::size_t kBitsPerWord = sizeof(unsigned long) * CHAR_BIT;
  const auto node = static_cast<std::size_t>(os_index);
  std::vector<unsigned long> mask(node / kBitsPerWord + 1);
  mask[node / kBitsPerWord] |= 1UL << (node % kBitsPerWord);
  // The kernel takes one bit fewer than it is told.
  const long result =
      syscall(SYS_set_mempolicy, MPOL_PREFERRED, mask.data(), mask.size() * kBitsPerWord + 1);
  if (result == 0 || errno == EPERM || errno == ENOSYS) return;
  throw CannotBind("NUMA node " + std::to_string(os_index) + " (" + std::strerror(errno) + ")");
}

}  // namespace launcher
