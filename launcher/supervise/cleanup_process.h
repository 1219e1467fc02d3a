// SPDX-License-Identifier: Apache-2.0
//
// The guardian is a process beside ddlrun.  When ddlrun itself is killed (by SIGKILL, or for lack
// of memory) the kernel ends the ranks.  The guardian then ends the processes that the ranks have
// started, and removes the run directory.

#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "support/descriptor.h"

namespace launcher {

class CleanupProcess {
 public:
  // Forks, and so is for single-threaded callers.  When this process ends without destroying the
  // Guardian, the process groups that were named by Watch are ended, and `run_directory` ("": none)
  // is removed.  Throws LaunchError(EX_OSERR).
  explicit CleanupProcess(const std::string& run_directory);
  // Ends the guardian without cleaning up.
  ~CleanupProcess();
  CleanupProcess(const CleanupProcess&) = delete;
  CleanupProcess& operator=(const CleanupProcess&) = delete;

  // `group` is the process group of a child that was not reaped yet; `grace` is how long it may
  // take to end by itself before it gets SIGKILL.
  void Watch(pid_t group, std::chrono::milliseconds grace);
  // The group has ended.  To be called before its first process is reaped, since from then on
  // another group may get its number.
  void Forget(pid_t group);

 private:
  support::Descriptor pipe_;
  pid_t pid_ = 0;
};

// What a child leaves behind when it dies: a rank its workers and helpers; an mpirun that has lost
// a node the srun that starts its daemons, which would go on for as long as it waits for the node.
// While an Orphans exists, this process is the parent of such processes instead of process 1
// (PR_SET_CHILD_SUBREAPER, prctl(2)).  For single-threaded callers.
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

  // Ends them (shim/leftovers.h), also those with a session of their own; after `terminate_after`,
  // since some end by themselves.  To be called when no other child is left than those that were
  // there at the beginning.  Returns a note for the user on each that cannot be ended.
  std::vector<std::string> End(std::chrono::milliseconds terminate_after) const;

 private:
  std::vector<pid_t> Orphaned() const;

  std::vector<pid_t> no_orphans_;
};

}  // namespace launcher
