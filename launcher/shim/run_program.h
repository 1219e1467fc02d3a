// SPDX-License-Identifier: Apache-2.0
//
// The shim's last act.  Under the local launcher it becomes the program.  Under srun and mpirun it
// stays in front of it and says on standard error how it ended, since they do not always; ddlrun
// reads that (rank_report.h).

#pragma once

#include <signal.h>

namespace launcher {

struct RankProcess {
  const char* report_key = "";
  int rank = 0;
  const char* host = "";
  bool is_of_mpirun = false;
  const char* path = "";  // PATH
  int log = -1;           // descriptor of its log file
};

// Becomes the program that the shell would start, also a script without an interpreter line.
// `path` is the value of PATH.  Returns errno.
int BecomeProgram(char* const* argv, const char* path);

// mpirun takes SIGTERM for itself and kills its ranks a second later, but passes SIGALRM on: ddlrun
// sends this in place of SIGTERM, and the shim gives its program SIGTERM.  The program starts with
// it ignored.
inline constexpr int kStopSignalOfMpirun = SIGALRM;

// Starts `argv` as a child in this process group, so that signals to the group reach it, passes
// its standard error on, and ends as it does: same exit code, same signal.  Reports the start once
// the program runs.  A failure is reported with the last lines of its standard error, unless
// SIGTERM or SIGINT came first: then this rank is not the cause.  Exit code 75, "stopped early with
// a checkpoint", is reported and becomes 0, lest srun and mpirun kill the other ranks, which are
// still writing theirs.  Returns errno when the program cannot be started.
int RunProgram(char* const* argv, const RankProcess& rank);

}  // namespace launcher
