// SPDX-License-Identifier: Apache-2.0
//
// Starts the children of a job, passes signals on to them and their output on to the user, and ends
// the job when one of them fails.  Blocks until no child is left, nor any process in the process
// group of a child.

#pragma once

#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "launcher/launch/launcher.h"
#include "launcher/supervise/cleanup_process.h"
#include "launcher/supervise/hang_query.h"
#include "launcher/supervise/job_result.h"
#include "launcher/supervise/job_watcher.h"
#include "launcher/supervise/rank_console.h"
#include "launcher/supervise/step_tools.h"
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
  ConsoleOptions console;          // how output is shown; its hosts are those below
  std::string shown_ranks;         // whose output is, of children that are ranks; "": of all
  std::string log_directory;       // for the log files of children that are ranks; "": none
  std::vector<std::string> hosts;  // of each rank
  std::string event_key;           // of the reports of the shims; "": there are no shims
  CleanupProcess* cleanup_process = nullptr;          // which is told of every child; may be null
  StepTools step_tools;                               // for the step of srun
  HangQueryOptions hang_query;                        // before a watcher ends a job that hangs
  std::vector<std::unique_ptr<JobWatcher>> watchers;  // of this run
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
// the first one counts.  A watcher (job_watcher.h) may end the job without a failure: its exit code
// counts then.
//
// Signals: SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2 and SIGCONT are passed on to every rank,
// through srun or mpirun.  Through mpirun and mpiexec SIGINT and SIGHUP arrive as SIGTERM, and
// mpiexec is not sent SIGUSR2.  After an order to stop every rank gets SIGCONT, and what is still
// stopped a grace later (3 s under srun and mpirun) is killed (launcher/features/stopped_ranks.h,
// shim/stopped_rank_monitor.h).  At SIGTSTP every rank gets SIGSTOP, and then ddlrun stops, until
// SIGCONT; a job that is ending ends.  At the second SIGINT, children that are ranks get SIGKILL;
// srun and mpirun get SIGTERM, at which they kill their ranks.  While no rank has started there is
// nobody whom an order to stop could reach: at SIGALRM mpirun would end with 0, and at one SIGINT
// srun would go on.  They get SIGTERM then, and SIGKILL when they do not end.  The exit code is 128
// + the first of these signals, whatever they return.  This is not so where no rank could report:
// without shims, or where mpirun was told to send the output elsewhere
// (ChildCommand::may_hide_events).
//
// Output: ranks wait for whoever reads their output, but ddlrun does not.  Once the job is ending,
// and nobody has read for `grace`, lines are dropped that do not fit into a MiB, and after an order
// to stop all lines that nobody takes; a note says how many.
//
// A job is in one of these states:
//
//   state     when                                        what is done                     then
//   running   ddlrun is sent a signal                     every rank gets it               (same)
//             an order to stop, no rank has started, and  srun or mpirun gets SIGTERM      killing
//             no shim has named the step of srun
//             a child fails                               the ranks are ended (EndRanks)   ending
//             a watcher ends or kills it for a hang       HangQuery asks who hangs, up to  (same)
//                                                         its limit; then as below
//             a watcher ends the job                      the ranks are ended              ending
//             a watcher kills it                          as when the time of ending is    killing
//                                                         over
//             a shim or srun reports a failed rank        the ranks are ended              ending
//             srun reports a lost node                    nothing: srun ends all           ending
//   any       the second SIGINT                           ranks get SIGKILL, srun and      ending
//                                                         mpirun SIGTERM
//   running,  all shims have reported that their ranks    the shims of mpirun end, which   (same)
//   ending    are gone                                    stay until then
//             srun or mpirun is still there               as when the time of ending is    killing
//             launcher_timeout later                      over
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
// After an order to stop, a failed rank that a shim or srun reports changes nothing: srun and
// mpirun end the other ranks, in the time that Slurm or Open MPI gives them.  Without shims that
// are heard, srun and mpirun get SIGTERM instead of EndRanks.
//
// Throws LaunchError when a child cannot be started; those started are killed first.  Where ranks
// that are children would need more open files than ddlrun may have, none is started.
JobResult Supervise(const std::vector<ChildCommand>& commands, const SupervisorOptions& options,
                    SignalRelay& signals);

}  // namespace launcher
