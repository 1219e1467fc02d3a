// SPDX-License-Identifier: Apache-2.0
//
// Ranks of Open MPI that wait for a message look for it again and again, and hold a core meanwhile;
// with mpi_yield_when_idle they call sched_yield in between.  32 of them on two cores would measure
// each other.  Here that call rests until something has come, by the epoll set that the same thread
// looks at (opal_event_include=epoll), so a rank that waits costs nothing, as on a node with a core
// for each.

#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

namespace {

thread_local int looked_at = -1;
// Since the last call of sched_yield: it may be all that the caller waits for, who has yet to look.
thread_local bool has_found = false;

}  // namespace

extern "C" int epoll_wait(int epoll, epoll_event* events, int max, int milliseconds) {
  constexpr std::size_t kBytesOfMask = 8;
  const auto found = static_cast<int>(
      ::syscall(SYS_epoll_pwait, epoll, events, max, milliseconds, nullptr, kBytesOfMask));
  looked_at = milliseconds == 0 ? epoll : -1;
  has_found = has_found || found > 0;
  return found;
}

extern "C" int sched_yield() noexcept {
  if (looked_at < 0) return static_cast<int>(::syscall(SYS_sched_yield));
  if (has_found) {
    has_found = false;
    return 0;
  }
  // What is no message wakes no epoll set.
  constexpr int kMilliseconds = 20;
  pollfd set{.fd = looked_at, .events = POLLIN, .revents = 0};
  ::poll(&set, 1, kMilliseconds);
  return 0;
}
