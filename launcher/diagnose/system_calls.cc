// SPDX-License-Identifier: Apache-2.0

#include "launcher/diagnose/system_calls.h"

#include <sys/syscall.h>

#include <algorithm>
#include <iterator>

namespace launcher {
namespace {

using Argument = SystemCall::Argument;

// Newer architectures lack those that have an ...at, or a p... with a mask.
constexpr SystemCall kSystemCalls[] = {
    {SYS_read, "read", Argument::kDescriptor},
    {SYS_write, "write", Argument::kDescriptor},
    {SYS_readv, "readv", Argument::kDescriptor},
    {SYS_writev, "writev", Argument::kDescriptor},
    {SYS_pread64, "pread", Argument::kDescriptor},
    {SYS_pwrite64, "pwrite", Argument::kDescriptor},
    {SYS_close, "close", Argument::kNone},
    {SYS_fsync, "fsync", Argument::kDescriptor},
    {SYS_fdatasync, "fdatasync", Argument::kDescriptor},
    {SYS_ftruncate, "ftruncate", Argument::kDescriptor},
    {SYS_fallocate, "fallocate", Argument::kDescriptor},
    {SYS_fstat, "fstat", Argument::kDescriptor},
    {SYS_getdents64, "getdents", Argument::kDescriptor},
    {SYS_ioctl, "ioctl", Argument::kDescriptor},
    {SYS_flock, "flock", Argument::kDescriptor},
    {SYS_fcntl, "fcntl", Argument::kDescriptor},
    {SYS_recvfrom, "recvfrom", Argument::kDescriptor},
    {SYS_recvmsg, "recvmsg", Argument::kDescriptor},
    {SYS_sendto, "sendto", Argument::kDescriptor},
    {SYS_sendmsg, "sendmsg", Argument::kDescriptor},
    {SYS_accept, "accept", Argument::kDescriptor},
    {SYS_accept4, "accept", Argument::kDescriptor},
    {SYS_connect, "connect", Argument::kDescriptor},
    {SYS_openat, "open", Argument::kPathAt},
    {SYS_newfstatat, "stat", Argument::kPathAt},
    {SYS_statx, "stat", Argument::kPathAt},
    {SYS_faccessat, "access", Argument::kPathAt},
    {SYS_unlinkat, "unlink", Argument::kPathAt},
    {SYS_mkdirat, "mkdir", Argument::kPathAt},
    {SYS_statfs, "statfs", Argument::kPath},
    {SYS_execve, "execve", Argument::kPath},
    {SYS_chdir, "chdir", Argument::kPath},
    {SYS_futex, "futex", Argument::kNone},
    {SYS_nanosleep, "nanosleep", Argument::kNone},
    {SYS_clock_nanosleep, "clock_nanosleep", Argument::kNone},
    {SYS_ppoll, "ppoll", Argument::kNone},
    {SYS_pselect6, "pselect", Argument::kCount},
    {SYS_epoll_pwait, "epoll_wait", Argument::kNone},
    // Until a child of vfork has begun its program, whose file may be on a file system that hangs.
    {SYS_clone, "clone", Argument::kNone},
    {SYS_wait4, "wait4", Argument::kNone},
    {SYS_waitid, "waitid", Argument::kNone},
    {SYS_rt_sigtimedwait, "sigtimedwait", Argument::kNone},
    {SYS_rt_sigsuspend, "sigsuspend", Argument::kNone},
    {SYS_msync, "msync", Argument::kNone},
    {SYS_munmap, "munmap", Argument::kNone},
    {SYS_mmap, "mmap", Argument::kNone},
    {SYS_exit_group, "exit_group", Argument::kNone},
#ifdef SYS_open
    {SYS_open, "open", Argument::kPath},
    {SYS_stat, "stat", Argument::kPath},
    {SYS_lstat, "stat", Argument::kPath},
    {SYS_access, "access", Argument::kPath},
    {SYS_unlink, "unlink", Argument::kPath},
    {SYS_mkdir, "mkdir", Argument::kPath},
    {SYS_rename, "rename", Argument::kPath},
    {SYS_poll, "poll", Argument::kNone},
    {SYS_select, "select", Argument::kCount},
    {SYS_epoll_wait, "epoll_wait", Argument::kNone},
    {SYS_pause, "pause", Argument::kNone},
    {SYS_vfork, "vfork", Argument::kNone},
#endif
};

}  // namespace

const SystemCall* FindSystemCall(std::int64_t number) {
  const auto* const found = std::ranges::find(kSystemCalls, number, &SystemCall::number);
  return found == std::end(kSystemCalls) ? nullptr : found;
}

}  // namespace launcher
