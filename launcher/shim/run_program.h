// SPDX-License-Identifier: Apache-2.0
//
// The last thing that a shim does.  Under the local launcher it becomes the program.  Under srun
// and mpirun it starts the program and waits for it, and reports on standard error how it ended,
// which srun and mpirun do not always say (protocol/rank_report.h).

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
// `folders` is the value of PATH.  Returns errno: ENOEXEC too for a shared library, and ENOENT for
// a script whose program env would not find, neither of which the system refuses.
int BecomeProgram(char* const* argv, const char* folders);

// The signal that ddlrun sends to mpirun in place of SIGTERM, SIGINT and SIGHUP.  At SIGTERM mpirun
// itself would end and kill its ranks a second later, but it passes SIGALRM on to them.  The shim
// gives its program SIGTERM then; the program itself is started with SIGALRM ignored.
inline constexpr int kStopSignalOfMpirun = SIGALRM;

// Starts `argv` as a child in this process group, so that signals to the group reach it, and passes
// its standard error on.  Reports when the program runs.  When it has ended, this process ends in
// the same way, with its exit code or by its signal.  Under mpirun the program is killed when the
// daemon that has started this process is no more.  A program that has been stopped for long is
// reported; an order to stop has it go on, and what is still stopped 3 s later is killed.
//
// A failure is reported together with the last lines of standard error, unless SIGTERM or SIGINT
// came first: then this rank is not the cause.  Exit code 75, stopped early with a checkpoint, is
// reported and becomes 0, since srun and mpirun would otherwise kill the other ranks, which are
// still writing theirs.  Returns errno when the program cannot be started.
int RunProgram(char** argv, const RankProcess& rank);

}  // namespace launcher
