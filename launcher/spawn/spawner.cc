// SPDX-License-Identifier: Apache-2.0

#include "launcher/spawn/spawner.h"

#include <array>

#include "launcher/error.h"

namespace launcher {

const Spawner& FindSpawner(const std::string& name) {
  static const std::array<Spawner, 3> spawners = {{
      {"srun", MakeSrunCommands},
      {"mpirun", MakeMpirunCommands},
      {"local", MakeLocalCommands},
  }};
  for (const Spawner& spawner : spawners) {
    if (spawner.name == name) return spawner;
  }
  throw LaunchError(EX_SOFTWARE, "no spawner is called '" + name + "'");
}

SpawnerChoice ChooseSpawner(const Plan& plan, bool has_remote_ranks, const SpawnerMeans& means) {
  const bool has_srun = means.in_slurm && means.srun_lacks.empty();
  const std::string no_srun =
      means.in_slurm && !has_srun ? "srun cannot (" + means.srun_lacks + "), " : "";
  if (has_srun) return {"srun", "inside Slurm, and it knows PMIx"};
  if (has_remote_ranks && means.has_mpirun)
    return {"mpirun", no_srun + "it reaches other machines"};
  if (has_remote_ranks) {
    throw LaunchError(
        EX_UNAVAILABLE,
        no_srun +
            "ranks on other machines need mpirun, which is not in PATH: load Open MPI "
            "('module load openmpi'), or name it in the site file");
  }
  if (plan.ranks.size() == 1) return {"local", no_srun + "one rank needs no mpirun"};
  if (means.has_mpirun) return {"mpirun", no_srun + "it is installed"};
  return {"local", no_srun + "mpirun is not installed"};
}

}  // namespace launcher
