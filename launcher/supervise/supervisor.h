// SPDX-License-Identifier: Apache-2.0
//
// Starts the children of a job, passes signals to them and their output on, and ends the job when
// one fails.  Blocks until no child is left; not even a process that a rank left in its process
// group.

#pragma once

#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "launcher/spawn/spawner.h"
#include "launcher/supervise/failure_report.h"
#include "launcher/supervise/guardian.h"
#include "launcher/supervise/step_tools.h"
#include "launcher/system/signal_relay.h"

namespace launcher {

struct SupervisorOptions {
  // Between SIGTERM and SIGKILL for the children that are left when one failed; and how long a
  // reader of the output may take nothing, once the job is to end.
  std::chrono::milliseconds grace{3000};
  // How long srun or mpirun may take to end the others by itself, if that is longer than `grace`.
  std::chrono::milliseconds grace_of_launcher{15000};
  // How long it may take until the shims of all ranks of srun or mpirun have said that their
  // programs run; 0: as long as it likes.  For an mpirun through which no shim was heard it does
  // not count.
  std::chrono::milliseconds start_limit{0};
  bool tag_output = false;         // "[rank]" in front of every line of a rank
  std::string log_directory;       // where children that are ranks are logged; "": nowhere
  std::vector<std::string> hosts;  // by rank, for the report
  std::string report_key;          // of the reports of the shims; "": there are none
  Guardian* guardian = nullptr;    // told of every child, if there is one
  // What mpirun is sent for SIGTERM, SIGINT and SIGHUP: kStopSignalOfMpirun where shims stand
  // before the programs.
  int stop_signal_of_mpirun = SIGTERM;
  StepTools step_tools;  // of srun's step
  // How long a step that was killed may take to be gone: what can be ended ends in moments, and a
  // stuck process after Slurm's UnkillableStepTimeout, a minute or more.
  std::chrono::milliseconds patience_with_step{10000};
};

struct JobResult {
  // Of the first child that failed, 128 + signal if one ended it; 0 when all succeeded.
  int exit_code = 0;
  std::optional<RankFailure> failure;   // empty on success, and when mpirun itself failed
  std::vector<std::string> lost_nodes;  // that srun said are gone
  bool told_to_stop = false;            // by SIGTERM, SIGINT or SIGHUP
  int stop_signal = 0;                  // that one, if it came before any failure or end
  // Nobody could read standard output or error any more, so that ddlrun has ended the job: exit
  // code 128 + SIGPIPE, no failure.
  bool output_is_closed = false;
  // Slurm ended the step before any failure: " DUE TO TIME LIMIT" or, by scancel, "".
  std::optional<std::string> cancelled;
  // "srun was ended by signal 9 (Killed)": by somebody else, before any rank failed; "" otherwise.
  std::string launcher_end;
  bool has_started = false;              // the program of every rank of srun or mpirun
  std::vector<std::string> not_started;  // nodes of which some rank had not when the time was over
  // Nodes of which srun told no end of a rank, though it did of others, when the job failed: they
  // may be gone.
  std::vector<std::string> silent_nodes;
  bool step_is_left = false;       // Slurm could not end it: what it holds is not free
  std::vector<std::string> notes;  // for the user, without "ddlrun: " and line end
};

// Any exit code but 0 is a failure; the others get SIGTERM, after `grace` SIGKILL.  srun and mpirun
// do that by themselves; if they have not ended after grace_of_launcher, they are ended with all
// ranks, and a step that is still there afterwards is a note.  So is a step ended whose srun a
// signal has ended, since its ranks go on.  Only EX_TEMPFAIL, "stopped early
// with a checkpoint", waits for the others, and counts when nothing else failed.  Of several
// failures the one seen first counts.  A start that is not over after start_limit is ended: exit
// code EX_UNAVAILABLE, no failure.
//
// Signals: SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT go to every rank, through srun or
// mpirun where it stands between (through mpirun SIGINT and SIGHUP arrive as SIGTERM); the second
// SIGINT is SIGKILL for ranks, SIGTERM for srun and mpirun, which then kill theirs.
//
// Output: ranks wait for whoever reads it, ddlrun does not.  When the job is to end, lines that do
// not fit into a MiB are dropped where nobody has read for `grace`, and after an order to stop all
// that nobody takes; a note has their number.  A closed standard output or error ends the job, but
// for one that was told to stop: it is about to end, and may take its time for that.
//
// Throws LaunchError when a child cannot be started; those started are killed first.
JobResult Supervise(const std::vector<ChildCommand>& commands, const SupervisorOptions& options,
                    SignalRelay& signals);

}  // namespace launcher
