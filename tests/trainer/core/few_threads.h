// SPDX-License-Identifier: Apache-2.0
//
// A process that gets a few threads and no more: for the body of an EXPECT_EXIT.

#pragma once

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <functional>

namespace trainer {

// Ends this process: with 0 if `holds` returns true, with 3 if it hangs.  A limit on memory stands
// for one on threads, since the superuser has none of those: stacks no longer find room.
[[noreturn]] inline void WithFewThreads(const std::function<bool()>& holds) {
  constexpr unsigned kSeconds = 20;
  constexpr rlim_t kRoom = 64u << 20;  // 7 stacks
  ::signal(SIGALRM, [](int) { ::_exit(3); });
  ::alarm(kSeconds);
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t bytes = pages * static_cast<rlim_t>(::sysconf(_SC_PAGE_SIZE)) + kRoom;
  const rlimit limit{bytes, bytes};
  ::setrlimit(RLIMIT_AS, &limit);
  if (::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED) {
    ::_exit(0);  // QEMU has no such limit
  }
  const bool held = holds();
  ::_exit(held ? 0 : 1);
}

}  // namespace trainer
