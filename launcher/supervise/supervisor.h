// SPDX-License-Identifier: Apache-2.0
//
// Starts the children of a job, passes signals on to them and their output on to the user, and ends
// the job when one of them fails.  Blocks until no child is left, nor any process in the process
// group of a child.

#pragma once

#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include "launcher/launch/launcher.h"
#include "launcher/supervise/cleanup_process.h"
#include "launcher/supervise/heartbeat.h"
#include "launcher/supervise/job_result.h"
#include "launcher/supervise/nodes_of_job.h"
#include "launcher/supervise/status_file.h"
#include "launcher/supervise/step_tools.h"
#include "launcher/supervise/time_limits.h"
#include "launcher/system/signal_relay.h"

namespace launcher {

struct SupervisorOptions {
  // The time between SIGTERM and SIGKILL for the other ranks when one has failed; shims count it
  // themselves.  It is also how long a reader of the output may take nothing once the job is
  // ending.
  std::chrono::milliseconds grace{3000};
  // How much longer srun or mpirun may take to end then.
  std::chrono::milliseconds grace_of_launcher{5000};
  // How long srun or mpirun may go on when the shims of all ranks have reported their ends.
  std::chrono::milliseconds launcher_timeout{5000};
  // How long it may take until the shims of all ranks of srun or mpirun have reported that their
  // programs run; 0: no limit.  It does not count for an mpirun from which no shim was heard, and
  // that has started processes.
  std::chrono::milliseconds start_limit{0};
  // How long the other ranks may take to end once one has ended by itself without a failure; 0: no
  // limit.
  std::chrono::milliseconds end_limit{0};
  // A file, or one for each rank, that the program must touch as it makes progress; pattern "":
  // none.
  HeartbeatOptions heartbeat;
  TimeLimitWatcherOptions time_limit;  // before which every rank gets a signal
  StatusFileOptions status_file;
  bool tag_output = false;         // "[rank]" in front of every line of a rank
  std::string log_directory;       // for the log files of children that are ranks; "": none
  std::vector<std::string> hosts;  // of each rank
  std::string event_key;           // of the reports of the shims; "": there are no shims
  CleanupProcess* cleanup_process = nullptr;  // which is told of every child; may be null
  StepTools step_tools;                       // for the step of srun
  NodesOfJobOptions nodes_of_job;             // where Slurm gives them
  // How long ddlrun waits for a step that was killed to be gone.  Most end at once; one with a
  // process that cannot be killed ends after Slurm's UnkillableStepTimeout, which is a minute or
  // more.
  std::chrono::milliseconds timeout_with_step{10000};
};

// Failures: any exit code but 0 is a failure of the job.  The other ranks then get
// kPeerFailedSignal and SIGTERM, and SIGKILL after `grace`: children of this process from here,
// those of srun and mpirun from their shims, which this signal reaches.  When srun or mpirun has
// not ended grace_of_launcher later, it and all ranks are ended, and a note says if the step still
// exists afterwards.  What ranks have left is ended (shim/leftovers.h).  When a signal has ended
// srun, its step is ended too, since the ranks would go on.  After EX_TEMPFAIL, stopped early with
// a checkpoint, the other ranks go on; it counts only when nothing else fails.  Of several failures
// the first one counts.  A start that takes longer than start_limit is ended with the exit code
// EX_UNAVAILABLE and without a failure, one on nodes that the Slurm job no longer has with
// EX_CONFIG; so is a job whose last ranks take longer to end than end_limit, but with EX_TEMPFAIL
// where a rank had stopped early.
//
// A program that hangs by its heartbeat is ended as if a rank had failed, with the exit code
// EX_SOFTWARE, unless a stop of ddlrun was requested: what the ranks do then may take its time.
//
// Signals: SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2 and SIGCONT are passed on to every rank,
// through srun or mpirun.  Through mpirun and mpiexec SIGINT and SIGHUP arrive as SIGTERM, and
// mpiexec is not sent SIGUSR2.  After an order to
// stop every rank gets SIGCONT, and what is still stopped a grace later (3 s under srun and mpirun)
// is killed.  A rank that has been stopped for 10 s without such an order is named.  At SIGTSTP
// every rank gets SIGSTOP, and then ddlrun stops, until SIGCONT; a job that is ending ends.  At the
// second SIGINT, children that are ranks get SIGKILL; srun and mpirun get SIGTERM, at which they
// kill their ranks.  While no rank has started there is nobody whom an order to stop could reach:
// at SIGALRM mpirun would end with 0, and at one SIGINT srun would go on.  They get SIGTERM then,
// and SIGKILL when they do not end.  The exit code is 128 + the first of these signals, whatever
// they return.  This is not so where nothing would be heard of a rank: without shims, or where
// mpirun was told to send the output elsewhere (ChildCommand::may_hide_events).
//
// Output: ranks wait for whoever reads their output, but ddlrun does not.  Once the job is ending,
// and nobody has read for `grace`, lines are dropped that do not fit into a MiB, and after an order
// to stop all lines that nobody takes; a note says how many.  When standard output or standard
// error is closed, the job is ended, unless a stop of ddlrun was requested: it is ending then, and
// may take its time for that.
//
// A job is in one of these states:
//
//   state     when                                        what is done                     then
//   running   ddlrun is sent a signal                     every rank gets it               (same)
//             an order to stop, no rank has started, and  srun or mpirun gets SIGTERM      killing
//             no shim has named the step of srun
//             a child fails                               the ranks are ended (EndRanks)   ending
//             nobody can read any more, and there was no  the ranks are ended              ending
//             order to stop
//             a shim or srun reports a failed rank        the ranks are ended              ending
//             srun reports a lost node                    nothing: srun ends all           ending
//             a file is not touched any more (heartbeat)  the ranks are ended              ending
//             the time of the job ends (time_limits.h)     every rank gets SIGUSR1 (same)
//             ranks take too long to start, or to end     as when the time of ending is    killing
//             once others have (time_limits.h); or none   over
//             has started, and the Slurm job has lost
//             nodes of the plan (nodes_of_job.h)
//   any       the second SIGINT                           ranks get SIGKILL, srun and      ending
//                                                         mpirun SIGTERM
//   running,  all shims have reported that their ranks    the shims of mpirun end, which   (same)
//   ending    are gone                                    stay until then
//             srun or mpirun is still there               as when the time of ending is    killing
//             launcher_timeout later                over
//   ending    its time is over                            the step gets SIGKILL, mpirun    killing
//                                                         SIGTERM
//   killing   scancel has arrived and srun has had its    children get SIGKILL             killed
//             grace; or the time is over
//   any       no child is left                            what mpirun left is ended;       -
//                                                         a step that srun left, or whose
//                                                         srun a signal has ended, gets
//                                                         SIGKILL; ddlrun waits until a
//                                                         killed one is gone
//
// The times for start and end begin anew when children have waited for a reader, and that for the
// start when srun has waited for resources.  The start has no limit where ddlrun starts the ranks
// itself, nor under an mpirun from which no shim was heard: options of the user (--mpiarg) may send
// the output of the ranks elsewhere.  An mpirun without any child process has a limit all the same,
// since it can have started neither a rank nor a daemon.
//
// After an order to stop, a failed rank that a shim or srun reports changes nothing: srun and
// mpirun end the other ranks, in the time that Slurm or Open MPI gives them.  Without shims that
// are heard, srun and mpirun get SIGTERM instead of EndRanks.
//
// Throws LaunchError when a child cannot be started; those started are killed first.
JobResult Supervise(const std::vector<ChildCommand>& commands, const SupervisorOptions& options,
                    SignalRelay& signals);

}  // namespace launcher
