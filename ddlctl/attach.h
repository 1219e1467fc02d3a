// SPDX-License-Identifier: Apache-2.0
//
// Runs a command beside a rank of a job of ddlrun: on its node, in its environment and its working
// directory.

#pragma once

#include <string>
#include <vector>

#include "ddlctl/why.h"

namespace ddlctl {

struct AttachOptions {
  WhyOptions job;  // which job, and how it is found; facts_only: the rank is on this node
  int rank = 0;
  std::vector<std::string>
      command;  // "{pid}" and "{rank}" in it are those of the rank; {}: a shell
  bool on_terminal = false;
};

// The exit code of the command (128 + n of signal n), 127 where it is not found.  Does not return
// where the rank is on another node: this process becomes srun.  Throws Error(EX_USAGE) for a rank
// that the job has not, Error(EX_UNAVAILABLE) for one that has ended or is not found, and as
// ShowWhy does.
int RunBesideRank(const AttachOptions& options);

// srun and its arguments, with which it runs `ddlctl attach --here NAME RANK ...` on `host`.  It
// shares with the ranks what they hold.  Pure.
std::vector<std::string> AttachCommand(const std::string& srun, const std::string& job,
                                       const std::string& host, const std::string& name,
                                       const AttachOptions& options);

// `command` with the numbers of the rank and of its process.  Pure.
std::vector<std::string> CommandOfRank(std::vector<std::string> command, int rank, int pid);

}  // namespace ddlctl
