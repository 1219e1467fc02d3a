// SPDX-License-Identifier: Apache-2.0
//
// A kernel that lacks system calls, or a container that forbids them, on a machine that has them.

#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include <cstddef>
#include <cstdint>

namespace tests {

// From now on this process and those it starts get `error` for the system calls numbered `first` to
// `last`.  False where this cannot be had (QEMU does not emulate it).
inline bool RejectCalls(std::uint32_t first, std::uint32_t last, std::uint32_t error) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, first, 0, 2),
      BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, last, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter = {sizeof(program) / sizeof(program[0]), program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

}  // namespace tests
