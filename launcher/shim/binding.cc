// SPDX-License-Identifier: Apache-2.0

#include "launcher/shim/binding.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launcher/topology/fingerprint.h"

namespace launcher {
namespace {

constexpr int kPreferred = 1;  // MPOL_PREFERRED of linux/mempolicy.h
constexpr size_t kWords = kMaxCpus / kWordBits;

__attribute__((format(printf, 1, 2))) Rejection CannotBind(const char* format, ...) {
  Rejection rejection;
  int length = snprintf(rejection.text, sizeof(rejection.text), "cannot bind: ");
  va_list arguments;
  va_start(arguments, format);
  length += vsnprintf(rejection.text + length, 100, format, arguments);
  va_end(arguments);
  snprintf(rejection.text + length, sizeof(rejection.text) - static_cast<size_t>(length),
           "; the nodes differ from the plan, start with --bind=none");
  return rejection;
}

// False where it is not a list of CPUs, or has a number above those of any machine.
bool ReadCpus(const char* list, unsigned long* mask) {
  for (;;) {
    if (*list < '0' || *list > '9') return false;
    char* end = nullptr;
    const unsigned long first = strtoul(list, &end, 10);
    unsigned long last = first;
    if (*end == '-') last = strtoul(end + 1, &end, 10);
    if (last < first || last >= kMaxCpus) return false;
    for (unsigned long cpu = first; cpu <= last; ++cpu) {
      mask[cpu / kWordBits] |= 1UL << (cpu % kWordBits);
    }
    if (*end != ',') return *end == '\0' || *end == ' ';
    list = end + 1;
  }
}

}  // namespace

Rejection BindCpus(const char* cpus) {
  unsigned long wanted[kWords] = {};
  unsigned long bound[kWords] = {};
  if (!ReadCpus(cpus, wanted)) return CannotBind("'%.40s' are no CPUs", cpus);
  if (sched_setaffinity(0, sizeof(wanted), reinterpret_cast<cpu_set_t*>(wanted)) != 0 ||
      sched_getaffinity(0, sizeof(bound), reinterpret_cast<cpu_set_t*>(bound)) != 0) {
    return CannotBind("none of the planned CPUs can be used (%s)", strerror(errno));
  }
  for (size_t cpu = 0; cpu < kMaxCpus; ++cpu) {
    const unsigned long bit = 1UL << (cpu % kWordBits);
    if ((wanted[cpu / kWordBits] & bit) != 0 && (bound[cpu / kWordBits] & bit) == 0) {
      return CannotBind("CPU %zu is not there or not given to this job", cpu);
    }
  }
  return {};
}

int CountUsableCpus() {
  unsigned long usable[kWords] = {};
  if (sched_getaffinity(0, sizeof(usable), reinterpret_cast<cpu_set_t*>(usable)) != 0) return 0;
  int count = 0;
  for (const unsigned long word : usable) count += __builtin_popcountl(word);
  return count;
}

Rejection PreferMemoryOf(int os_index) {
  const auto node = static_cast<size_t>(os_index);
  unsigned long mask[kWords] = {};
  if (node < kMaxCpus) mask[node / kWordBits] |= 1UL << (node % kWordBits);
  // The kernel reads one bit fewer than it is told.
  const size_t bits = (node / kWordBits + 1) * kWordBits + 1;
  const long result = syscall(SYS_set_mempolicy, kPreferred, mask, bits);
  if (result == 0 || errno == EPERM || errno == ENOSYS) return {};
  return CannotBind("NUMA node %d (%s)", os_index, strerror(errno));
}

}  // namespace launcher
