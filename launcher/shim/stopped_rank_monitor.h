// SPDX-License-Identifier: Apache-2.0
//
// Ranks that are stopped: by SIGSTOP, by a debugger, or by a terminal that they have of their own.
// Such a rank neither goes on nor sees an order to stop, and tells nobody.
// It has no C++ library: the shim uses it for ranks of srun and mpirun, ddlrun for its own
// children.

#pragma once

#include <sys/types.h>

namespace launcher {

// The first of `program` and the processes below it that is stopped (state T or t in /proc); 0
// where none is, or the kernel does not tell.  Children of threads other than the first one are not
// looked at: programs fork their workers there, and a program may have hundreds of threads.
pid_t FindStopped(pid_t program);

// What to do about a rank that is stopped.  Pure.
class StoppedRankMonitor {
 public:
  enum class Step { kNothing, kPrint, kKill };
  // How long a rank is stopped until that is said, in seconds.
  static constexpr double kLong = 10;

  // `stopped` is what FindStopped has found at `now`, in seconds by any clock that goes on.  Once
  // the rank is told to stop, and was sent SIGCONT with that, it has `grace` seconds to go on: then
  // what is stopped is to be killed, each time.  That it is stopped is said once, until it has gone
  // on.
  Step Look(pid_t stopped, double now, bool is_stop_requested, double grace);

 private:
  double since_ = -1;        // it is stopped
  double notified_at_ = -1;  // it was told to stop
  bool is_reported_ = false;
};

}  // namespace launcher
