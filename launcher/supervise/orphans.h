// SPDX-License-Identifier: Apache-2.0
//
// What a child leaves behind when it dies: an mpirun that has lost a node dies without the srun
// that starts its daemons, and that srun would go on for as long as it waits for the node.  While
// an Orphans exists, this process is the parent of such processes in place of process 1
// (PR_SET_CHILD_SUBREAPER, prctl(2)).  For single-threaded callers.

#pragma once

#include <sys/types.h>

#include <chrono>
#include <vector>

namespace launcher {

class Orphans {
 public:
  // The children that this process has by now are no orphans.
  Orphans();
  ~Orphans();
  Orphans(const Orphans&) = delete;
  Orphans& operator=(const Orphans&) = delete;

  // Reaps those that have ended.  `children` are those that this process has started since then,
  // and are not reaped.
  void Reap(const std::vector<pid_t>& children) const;

  // Returns when all have ended that are of `session`: most do by themselves; after `patience` they
  // get SIGTERM, after twice that SIGKILL.  Gives up twice that later, since a process may wait for
  // a disk for ever.  `session` is that of the child that has left them.  Those with another one,
  // setsid(2), are daemons that a rank has started to outlive it, and are left alone.  To be called
  // when no other child is left than those that were there at the beginning.
  void End(pid_t session, std::chrono::milliseconds patience = std::chrono::seconds(1)) const;

 private:
  std::vector<pid_t> Left(pid_t session) const;
  std::vector<pid_t> Orphaned() const;

  std::vector<pid_t> no_orphans_;
};

}  // namespace launcher
