// SPDX-License-Identifier: Apache-2.0
//
// The guardian is a process beside ddlrun.  When ddlrun itself is killed (by SIGKILL, or for lack
// of memory) the kernel ends the ranks.  The guardian then ends the processes that the ranks have
// started, and removes the run directory.

#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>

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

}  // namespace launcher
