// SPDX-License-Identifier: Apache-2.0
//
// on_old_kernel PROGRAM [ARGUMENT ...]: runs PROGRAM as on Linux 4.18 (RHEL 8), which answers
// ENOSYS to every later system call.  Exit status: the program's; 77: this kernel can filter no
// calls.

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "tests/support/rejected_calls.h"

int main(int, char** argv) {
  // The last calls that 4.18 got; the later ones have greater numbers.
  static_assert(SYS_rseq > SYS_statx);
  constexpr std::uint32_t kLast = SYS_rseq > SYS_io_pgetevents ? SYS_rseq : SYS_io_pgetevents;
  if (!tests::RejectCalls(kLast + 1, kLast + 1000, ENOSYS)) {
    std::fprintf(stderr, "on_old_kernel: cannot filter system calls: %s\n", std::strerror(errno));
    return 77;
  }
  if (argv[1] == nullptr || syscall(SYS_close_range, 1000, 1000, 0) != -1 || errno != ENOSYS) {
    std::fprintf(stderr, "usage: on_old_kernel PROGRAM [ARGUMENT ...]\n");
    return 64;
  }
  execvp(argv[1], argv + 1);
  std::fprintf(stderr, "on_old_kernel: cannot start %s: %s\n", argv[1], std::strerror(errno));
  return 69;
}
