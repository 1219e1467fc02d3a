// SPDX-License-Identifier: Apache-2.0
//
// From a Job to the child processes that ddlrun starts.  One function per way to start ranks, all
// of the same shape: srun_spawner.cc, mpirun_spawner.cc, local_spawner.cc; a new one is a new file,
// a line here and one in spawner.cc.  Pure: commands are argv vectors, never a shell's text.

#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "launcher/base/environment.h"
#include "launcher/plan/plan.h"
#include "launcher/spawn/mpirun_version.h"
#include "launcher/spawn/plain_path.h"

namespace launcher {

// Everything that decides the commands.
struct Job {
  Plan plan;
  bool has_remote_ranks = false;     // some are not on this machine: carry the environment there
  std::vector<std::string> program;  // and its arguments
  std::string shim;                  // path of ddlrun-rank, the same on all nodes
  Environment environment;           // what children of ddlrun get
  // Set for every rank, and shown in the command.
  std::map<std::string, std::string> rank_settings;
  std::vector<std::string> asked_exports;  // -x NAME: carried although IsForwarded denies
  std::string run_directory;               // private, on this node; the files of FilesOf are in it
  bool tag_output = false;                 // the rank in front of each line

  // Of srun alone.
  std::string srun;                       // path
  std::string mpi_type;                   // of --mpi: "pmix", "pmix_v4", "pmi2", "none"
  std::vector<std::string> hosts_of_job;  // in Slurm's order, whether or not they run ranks
  bool in_step = false;         // ddlrun itself runs in a step, whose resources are shared
  bool has_lost_nodes = false;  // the step before still holds what it had

  // Of mpirun alone.
  std::string mpirun;  // path
  MpiRuntime mpi_runtime = MpiRuntime::kOrte;
  std::vector<std::string> mpi_arguments;  // of the site file, --mpiarg and --tcp
  std::string rankfile;                    // the user's own, or ""
  std::string plan_rankfile;               // the run directory's RANKFILE
  bool in_slurm = false;                   // on nodes of the job; else by ssh
  bool is_root = false;
};

// One process to start.
struct ChildCommand {
  enum class Kind { kRank, kMpirun, kSrun };
  Kind kind = Kind::kRank;
  int rank = -1;                               // of a kRank; the others stand for all ranks
  std::vector<std::string> argv;               // argv[0] is a path
  std::vector<std::string> environment;        // "NAME=value"
  std::string report_key;                      // that its shims put into their reports
  std::shared_ptr<const PlainPath> open_file;  // that argv names, or null
};

// srun, once (of a heterogeneous job with a part for each component).  Tasks are in the
// plan's order: in Slurm's own where that is the same, else by the run directory's TASKFILE.  The
// GPUs of a node are visible to all of its tasks; the shim binds.  Throws LaunchError(EX_CONFIG)
// for an order that is not possible over the components of a heterogeneous job.
std::vector<ChildCommand> MakeSrunCommands(const Job& job);

// The host of every rank, a line each: what srun --distribution=arbitrary reads.
std::string TaskfileText(const Plan& plan);

// mpirun of Open MPI, once.  Ranks are mapped as the plan has them, by --map-by slot or node over
// the run directory's HOSTFILE (inside Slurm: slurm_for_mpirun.h), or by its RANKFILE where neither
// gives the plan's order; they are not bound, since the shim does that, but by the user's own
// rankfile, and under ORTE by any.
std::vector<ChildCommand> MakeMpirunCommands(const Job& job);

// One shim per rank, no MPI.  Throws LaunchError(EX_CONFIG) when a rank is not on this machine.
std::vector<ChildCommand> MakeLocalCommands(const Job& job);

struct Spawner {
  std::string name;
  std::vector<ChildCommand> (*make_commands)(const Job& job);
};

// The spawner called `name`, which --launcher and the site file have checked.
const Spawner& FindSpawner(const std::string& name);

// What --launcher=auto stands for: the name, and the reason for the user.
struct SpawnerChoice {
  std::string name;
  std::string reason;
  std::string mpi_type;  // of srun: see Job
};

// What this machine can start ranks with.
struct SpawnerMeans {
  bool in_slurm = false;
  std::string srun_lacks;              // why srun cannot be used inside Slurm, "" when it can
  std::vector<std::string> mpi_types;  // that srun knows
  std::string mpirun_lacks;            // why mpirun cannot be used, "" when it can
};

// srun with the type that --pmi=`pmi` stands for; "auto" is pmix.  Throws
// LaunchError(EX_UNAVAILABLE) when srun cannot be used or does not know it, with what it knows.
SpawnerChoice ChooseSrun(const std::string& pmi, const SpawnerMeans& means);

// Inside Slurm srun with what `pmi` says, where that is not "auto" or srun knows PMIx; else mpirun,
// else srun without PMI where ranks are on other machines, else local.  Throws as ChooseSrun, and
// LaunchError(EX_UNAVAILABLE) when a rank is on another machine and nothing reaches it.
SpawnerChoice ChooseSpawner(const Plan& plan, bool has_remote_ranks, const std::string& pmi,
                            const SpawnerMeans& means);

}  // namespace launcher
