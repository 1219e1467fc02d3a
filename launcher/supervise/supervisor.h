// SPDX-License-Identifier: Apache-2.0
//
// Starts the children of a job, passes signals to them and their output on, and ends the job when
// one fails.  Blocks until no child is left; not even a process that a rank left in its process
// group.

#pragma once

#include <chrono>
#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launcher/spawn/spawner.h"
#include "launcher/supervise/failure_report.h"
#include "launcher/supervise/guardian.h"
#include "launcher/supervise/signal_relay.h"

namespace launcher {

struct SupervisorOptions {
  // Between SIGTERM and SIGKILL for the children that are left when one failed.
  std::chrono::milliseconds grace{3000};
  // How long srun may take to end the others by itself, if that is longer than `grace`.
  std::chrono::milliseconds grace_of_srun{15000};
  bool tag_output = false;         // "[rank]" in front of every line of a rank
  std::string log_directory;       // where children that are ranks are logged; "": nowhere
  std::vector<std::string> hosts;  // by rank, for the report
  Guardian* guardian = nullptr;    // told of every child, if there is one
  // What mpirun is sent for SIGTERM, SIGINT and SIGHUP: kStopSignalOfMpirun where shims stand
  // before the programs.
  int stop_signal_of_mpirun = SIGTERM;
  // Sends a signal to the ranks of a step of Slurm, "123.4", without waiting.
  std::function<void(const std::string& step, int signal)> signal_step;
};

struct JobResult {
  // Of the first child that failed, 128 + signal if one ended it; 0 when all succeeded.
  int exit_code = 0;
  std::optional<RankFailure> failure;   // empty on success, and when mpirun itself failed
  std::vector<std::string> lost_nodes;  // that srun said are gone
  bool told_to_stop = false;            // by SIGTERM, SIGINT or SIGHUP
  // "srun was ended by signal 9 (Killed)": by somebody else, before any rank failed; "" otherwise.
  std::string launcher_end;
};

// Any exit code but 0 is a failure; the others get SIGTERM, after `grace` SIGKILL.  srun does that
// by itself, but is killed with the whole step if it has not ended after grace_of_srun.  Only
// EX_TEMPFAIL, "stopped early with a checkpoint", waits for the others, and counts when nothing
// else failed.  Of several failures the one seen first counts.
//
// Signals: SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT go to every rank, through srun or
// mpirun where it stands between (through mpirun SIGINT and SIGHUP arrive as SIGTERM); the second
// SIGINT is SIGKILL for ranks, SIGTERM for srun and mpirun, which then kill theirs.
//
// Throws LaunchError when a child cannot be started; those started are killed first.
JobResult Supervise(const std::vector<ChildCommand>& commands, const SupervisorOptions& options,
                    SignalRelay& signals);

}  // namespace launcher
