// SPDX-License-Identifier: Apache-2.0
//
// The launchers: what differs between the ways to start ranks, as data.  Whoever has to know how
// the ranks of a job are started reads it here, and compares no names.  How the command of each is
// made is in launcher/launch/NAME_launcher.cc.  The shim reads this header, so it does without the
// C++ library.

#pragma once

#include <signal.h>
#include <string.h>

namespace launcher {

// How ranks are told that one of their peers has failed, so that no collective call completes any
// more: by a signal.  SIGTERM alone could as well be an order to stop, after which a training may
// write its checkpoint together with its peers.

// ddlrun sends it to all shims and ranks at once, through Slurm or mpirun.  It is one that the
// kernel ignores unless a program handles it.  ddltraind then ends at once (early_stop.h); for
// any other program the shim adds SIGTERM, and SIGKILL after the grace (shim/run_program.h).
inline constexpr int kPeerFailedSignal = SIGURG;

// Whether MPI_Init of Open MPI, with which ddltraind is built, finds the other ranks.
enum class OpenMpi { kNever, kWithPmix, kAlways };

struct LauncherTraits {
  const char* name = "";     // of --launcher, of the site file and in DDLRUN_LAUNCHER
  const char* program = "";  // which starts the ranks, as messages call it
  bool is_direct = false;    // there is no such program: the ranks are children of ddlrun

  // The variables by which a rank knows who it is; "": none.  Of those with its number the first
  // one that is set counts.
  const char* rank_variables[2] = {"", ""};
  const char* world_size_variable = "";
  const char* local_rank_variable = "";
  const char* local_world_size_variable = "";
  OpenMpi open_mpi = OpenMpi::kNever;

  // The ranks are tasks of a step of Slurm: scancel sends them signals and ends them, they have a
  // PMI by --mpi, and Slurm may lose a node of the step without ending it.
  bool makes_step = false;
  // A daemon on each node is the parent of the shims there.  It ends its ranks soon after one of
  // them has ended badly, so that a shim stays until the others know; it may end before they do.
  bool has_daemons = false;
  // Before they kill, the daemons sleep for seconds, unless SIGCHLD wakes them.
  bool has_sleeping_daemons = false;
  // They pass a signal on only to the ranks that have been started when it comes.
  bool signals_reach_started_only = false;
  // Takes options of the user (--mpiarg, --rankfile), refuses to be run by root without an option,
  // and puts a directory of its own in front of PATH.
  bool is_open_mpi = false;
  // Reaches hosts by ssh too, which need not be of the Slurm job.
  bool has_ssh = false;

  // What the program is sent instead of a signal for the ranks; 0: the signal itself.
  int stop_signal = 0;        // of SIGTERM, SIGINT and SIGHUP, by which it would end itself
  int failure_signal = 0;     // of kPeerFailedSignal; SIGTERM: it comes from the daemon as such
  int suspend_signal = 0;     // of SIGSTOP
  bool dies_of_usr2 = false;  // and so is not sent SIGUSR2
  bool leaves_input_open = false;  // of other ranks than 0, which would wait for its end
  // May end with 0 though a rank has failed (MPICH 4.0.2, where it has passed a signal on).
  bool hides_exit_codes = false;
  // Prints ten lines about a rank that a signal has ended, whose shim ends with 128 + n instead.
  bool explains_signals = false;
};

inline constexpr LauncherTraits kLaunchers[] = {
    {.name = "srun",
     .program = "srun",
     .rank_variables = {"SLURM_PROCID", ""},
     .world_size_variable = "SLURM_STEP_NUM_TASKS",
     .local_rank_variable = "SLURM_LOCALID",
     .open_mpi = OpenMpi::kWithPmix,
     .makes_step = true},
    {.name = "mpirun",
     .program = "mpirun",
     .rank_variables = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK"},
     .world_size_variable = "OMPI_COMM_WORLD_SIZE",
     .local_rank_variable = "OMPI_COMM_WORLD_LOCAL_RANK",
     .local_world_size_variable = "OMPI_COMM_WORLD_LOCAL_SIZE",
     .open_mpi = OpenMpi::kAlways,
     .has_daemons = true,
     .has_sleeping_daemons = true,
     .signals_reach_started_only = true,
     .is_open_mpi = true,
     .has_ssh = true,
     .stop_signal = SIGALRM,
     .suspend_signal = SIGTSTP},
    {.name = "local", .is_direct = true},
    {.name = "hydra",
     .program = "mpiexec",
     .rank_variables = {"PMI_RANK", ""},
     .world_size_variable = "PMI_SIZE",
     .has_daemons = true,
     .has_ssh = true,
     .stop_signal = SIGQUIT,
     .failure_signal = SIGTERM,
     .dies_of_usr2 = true,
     .leaves_input_open = true,
     .hides_exit_codes = true,
     .explains_signals = true},
};

// The traits of the launcher called `name`, which must be ended by '\0'.  For any other name, those
// of a launcher with the name "".
inline const LauncherTraits& TraitsOf(const char* name) {
  static constexpr LauncherTraits kNone;
  for (const LauncherTraits& launcher : kLaunchers) {
    if (strcmp(launcher.name, name) == 0) return launcher;
  }
  return kNone;
}

// mpirun and srun take the word ":" for the end of one program and the beginning of another.  So
// words of colons alone have one colon more on their way from ddlrun to the shim.

// Whether `word` is one colon or more, and nothing else.
inline bool IsOfColons(const char* word) {
  if (*word == '\0') return false;
  while (*word == ':') ++word;
  return *word == '\0';
}

}  // namespace launcher
