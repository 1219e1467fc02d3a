// SPDX-License-Identifier: Apache-2.0
//
// The last thing that a shim does.  Under the local launcher it becomes the program.  Under srun
// and mpirun it starts the program and waits for it, and reports on standard error how it ended,
// which srun and mpirun do not always say (protocol/rank_event.h).

#pragma once

#include "launcher/protocol/launchers.h"
#include "launcher/shim/energy_meter.h"

namespace launcher {

struct RankProcess {
  const char* event_key = "";
  int rank = 0;
  const char* host = "";
  const LauncherTraits* launcher = nullptr;
  bool has_peers = true;
  int grace_ms = 3000;      // how long the program may take to end once a peer has failed
  const char* path = "";    // PATH
  int log = -1;             // descriptor of its log file
  bool has_frames = false;  // its output is passed on in frames
  bool is_shown = true;     // false: it is not
  EnergyMeter energy;       // of the GPUs of its node; none where another rank has it
};

// Becomes the program that the shell would start, also a script without an interpreter line.
// `directories` is the value of PATH.  Returns errno: ENOEXEC too for a shared library, and ENOENT
// for a script whose program env would not find, neither of which the system refuses.
int BecomeProgram(char* const* argv, const char* directories);

// Starts `argv` as a child in this process group, so that signals to the group reach it, and passes
// its standard error on.  At the signal that the launcher was sent instead of an order to
// stop (launchers.h) the program, which is started with that ignored, gets SIGTERM.  Reports when
// the program runs.  When it has ended, what it has left is ended (leftovers.h); what cannot be is
// reported, and what the meter of energy says.  Then this process ends in the same way as the
// program, with its exit code or by its signal.  The program is killed when the daemon that has
// started this process, where the launcher has daemons, is no more. A program that has been stopped
// for long is reported; an order to stop has it go on, and what is still stopped 3 s later is
// killed.
//
// At kPeerFailedSignal the process group gets SIGTERM and SIGCONT, and the program SIGKILL when
// grace_ms are over.  So it is at a SIGTERM from a daemon, which ends its ranks then.
// The shim then ends with 0: the rank is not the cause.
//
// The shim of a rank that has failed stays until the signal comes, for 0.3 s at most: when srun
// learns of a failure it ends the step, and what the other shims report then may be lost.  Daemons
// would kill the others, shims and all, within 0 to 2 s of the first end that they do not like:
// their shims stay until the signal comes for the second time, which ddlrun sends when all ranks
// are gone; for 1.5 s where it does not come at all, and otherwise for the grace and 3 s.
//
// A failure is reported together with the last lines of standard error, unless one of these signals
// or SIGINT came first: then this rank is not the cause.  Exit code 75, stopped early with a
// checkpoint, is reported and becomes 0, since srun and mpirun would otherwise kill the other
// ranks, which are still writing theirs.  Returns errno when the program cannot be started.
int RunProgram(char** argv, const RankProcess& rank);

}  // namespace launcher
