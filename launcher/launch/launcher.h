// SPDX-License-Identifier: Apache-2.0
//
// Launchers make of a LaunchRequest the commands of the child processes that ddlrun starts.  A new
// one is a row in protocol/launchers.h, which has all else that differs between them, a file
// NAME_launcher.cc, a line here and a line in launcher.cc.  A command is a vector of arguments and
// never a text for a shell.  Pure, but for the search for a program.

#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "launcher/base/environment.h"
#include "launcher/launch/mpirun_version.h"
#include "launcher/placement/launch_plan.h"
#include "launcher/protocol/launchers.h"
#include "support/descriptor.h"

namespace launcher {

// A path that PRRTE can read in "--map-by rankfile:FILE=PATH".  A ':' or '-' in the path would end
// it there (seen with Open MPI 5.0.7).
class PlainPath {
 public:
  // Opens the file where `path` has such a character; the path is then /proc/PID/fd/N as long as
  // this object lives.  Otherwise it is `path` itself, and so for a file that cannot be opened,
  // about which mpirun will complain.
  explicit PlainPath(const std::string& path);

  const std::string& path() const { return path_; }

 private:
  support::Descriptor file_;
  std::string path_;
};

// All that the commands depend on.
struct LaunchRequest {
  LaunchPlan plan;
  bool has_remote_ranks = false;     // some are not on this machine, and need the environment too
  std::vector<std::string> program;  // and its arguments
  std::string shim;                  // path of ddlrun-rank, the same on all nodes
  Environment environment;           // of the children of ddlrun
  // Variables that are set for every rank, and that users see in the command.
  std::map<std::string, std::string> rank_settings;
  std::vector<std::string>
      requested_exports;      // of -x NAME: they are carried even if not IsForwarded
  std::string run_directory;  // on this node, with the files of FilesOf in it
  bool frames = false;        // the shims pass output on in frames, which ddlrun must get

  bool in_step = false;         // ddlrun itself runs in a step, with which the ranks share
  bool has_lost_nodes = false;  // the step of an earlier start still holds its resources

  // For srun only.
  std::string srun;                         // path
  std::vector<std::string> srun_arguments;  // from the site file and --srunarg
  std::string mpi_type;                     // of --mpi: "pmix", "pmix_v4", "pmi2", "none"

  // For all but the local launcher: in the order of Slurm, whether or not they run ranks.
  std::vector<std::string> hosts_of_job;

  // For mpirun and mpiexec.
  // The nodes have other host names than these: mpirun does not know that it runs on one of them.
  bool has_other_host_names = false;
  std::string mpirun;  // path
  MpiRuntime mpi_runtime = MpiRuntime::kOrte;
  std::vector<std::string> mpi_arguments;  // from the site file, --mpiarg and --tcp
  std::string rankfile;                    // that of the user, or ""
  std::string plan_rankfile;               // the RANKFILE in the run directory
  bool in_slurm = false;                   // the nodes are those of a Slurm job; false: by ssh
  bool is_root = false;
  bool has_home = true;  // HOME, or that of the passwd file; a container's user may have neither
  // Neither ssh nor rsh nor, in a job, srun is there: of Open MPI 4 mpirun then dies even where it
  // has to reach nobody, unless it is told so.
  bool mpirun_is_alone = false;
};

// One process to start.
struct ChildCommand {
  const LauncherTraits* launcher = &TraitsOf("local");
  int rank = -1;                               // where it is a rank; others start all ranks
  std::vector<std::string> argv;               // argv[0] is a path
  std::vector<std::string> environment;        // "NAME=value"
  std::string event_key;                       // which the shims put into their reports
  std::shared_ptr<const PlainPath> open_file;  // a file that argv names and that must stay open
  // It may have been told to send the output of the ranks elsewhere, and the reports with it.
  bool may_hide_events = false;
};

// One command of srun, which for a heterogeneous job has a part for each component.  srun gets the
// host of each rank by the TASKFILE in the run directory, so that no order of Slurm's own matters.
// All tasks of a node see all of its GPUs, and srun does not bind them, since the shim does. Throws
// LaunchError(EX_CONFIG) for an order that is not possible over the components of a heterogeneous
// job.
std::vector<ChildCommand> MakeSrunCommands(const LaunchRequest& job);

// The files that srun --distribution=arbitrary and the sequential mapper of ORTE read, by name: a
// line with the host of each rank.  TASKFILE has all ranks, TASKFILE.N those of component N of a
// heterogeneous job.
std::map<std::string, std::string> Taskfiles(const LaunchPlan& plan);

// One command of Open MPI's mpirun.  It places the ranks as the plan has them: by --map-by slot or
// node over the HOSTFILE in the run directory (inside Slurm by its variables, slurm_for_mpirun.h).
// Where neither gives the order of the plan, it goes by the TASKFILE under ORTE, by the RANKFILE
// under PRRTE.  mpirun does not bind the ranks, since the shim does; only a rankfile of the user
// does so under ORTE.
std::vector<ChildCommand> MakeMpirunCommands(const LaunchRequest& job);

// One command of Hydra's mpiexec, which places the ranks by the MACHINEFILE in the run directory.
// Throws LaunchError(EX_CONFIG) for an order of nodes that is not that of the Slurm job.
std::vector<ChildCommand> MakeHydraCommands(const LaunchRequest& job);
std::string FindHydra(const std::string& mpirun, bool is_known, const Environment& environment);

// The file that Hydra reads: a line with a host and how many ranks it gets, in the order of ranks.
std::string Machinefile(const LaunchPlan& plan);

// A command for each rank, of its shim, without MPI.  Throws LaunchError(EX_CONFIG) when a rank is
// not on this machine.
std::vector<ChildCommand> MakeLocalCommands(const LaunchRequest& job);

struct Launcher {
  std::string name;
  std::vector<ChildCommand> (*make_commands)(const LaunchRequest& job);
  // The path of its program, by the name or path of an mpirun; `is_known`: which is of its MPI.
  // Null where that is the mpirun itself, or it has none.  Throws LaunchError(EX_UNAVAILABLE).
  std::string (*find_program)(const std::string& mpirun, bool is_known,
                              const Environment& environment) = nullptr;
};

// The launcher called `name`, which is one of the values of --launcher and the site file.
const Launcher& FindLauncher(const std::string& name);

// Which launcher --launcher=auto stands for, and why, in words for the user.
struct LauncherChoice {
  std::string name;
  std::string reason;
  std::string mpi_type;  // for srun, as in LaunchRequest

  const LauncherTraits& traits() const { return TraitsOf(name.c_str()); }
};

// What this machine can start ranks with.
struct LauncherTools {
  bool in_slurm = false;
  std::string srun_lacks;                  // why srun cannot be used inside Slurm, "" when it can
  std::vector<std::string> mpi_types;      // that srun knows
  std::string mpirun_lacks;                // why mpirun cannot be used, "" when it can
  std::string mpirun_launcher = "mpirun";  // the launcher whose program mpirun is
};

// srun, with the type of --mpi that --pmi=`pmi` stands for; "auto" stands for pmix.  Throws
// LaunchError(EX_UNAVAILABLE) when srun cannot be used, or does not know that type.
LauncherChoice ChooseSrun(const std::string& pmi, const LauncherTools& means);

// The launcher for `plan`.  Inside Slurm it is srun, if `pmi` is not "auto" or srun knows PMIx.
// Otherwise it is mpirun; without mpirun, srun without a PMI where ranks are on other machines; and
// otherwise local.  Throws as ChooseSrun does, and LaunchError(EX_UNAVAILABLE) when a rank is on
// another machine and nothing reaches it.
LauncherChoice ChooseLauncher(const LaunchPlan& plan, bool has_remote_ranks, const std::string& pmi,
                              const LauncherTools& means);

// Words of the program as mpirun and srun pass them on to the shim.  Pure.

// `program` with a colon more for each word of colons alone (protocol/launchers.h), which the shim
// takes away.
std::vector<std::string> WithMoreColons(std::vector<std::string> program);

}  // namespace launcher
