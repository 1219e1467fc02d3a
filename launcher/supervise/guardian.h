// SPDX-License-Identifier: Apache-2.0
//
// A process beside ddlrun that cleans up when ddlrun itself is killed (SIGKILL, out of memory): the
// kernel then ends the ranks, but neither what they have started nor the run directory.

#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>

#include "launcher/system/descriptor.h"

namespace launcher {

class Guardian {
 public:
  // Forks; single-threaded callers only.  When this process ends without destroying the Guardian,
  // the process groups it was told of are ended and `run_directory` ("": none) is removed.
  // Throws LaunchError(EX_OSERR).
  explicit Guardian(const std::string& run_directory);
  // Dismisses the process and waits for it: nothing is ended or removed.
  ~Guardian();
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;

  // `group`: of a child that was not waited for yet.  `grace`: how long the group may take to end
  // by itself before it gets SIGKILL.
  void Watch(pid_t group, std::chrono::milliseconds grace);
  // The group has ended.  Called before its first process is waited for: from then on another may
  // have its number.
  void Forget(pid_t group);

 private:
  Descriptor pipe_;
  pid_t pid_ = 0;
};

}  // namespace launcher
