// SPDX-License-Identifier: Apache-2.0

#include "launcher/spawn/spawner.h"

#include <array>

#include "launcher/error.h"

namespace launcher {

const Spawner& FindSpawner(const std::string& name) {
  static const std::array<Spawner, 2> spawners = {{
      {"mpirun", MakeMpirunCommands},
      {"local", MakeLocalCommands},
  }};
  for (const Spawner& spawner : spawners) {
    if (spawner.name == name) return spawner;
  }
  throw LaunchError(EX_SOFTWARE, "no spawner is called '" + name + "'");
}

SpawnerChoice ChooseSpawner(const Plan& plan, bool has_remote_ranks, bool has_mpirun) {
  if (has_remote_ranks && has_mpirun) return {"mpirun", "it reaches other machines"};
  if (has_remote_ranks) {
    throw LaunchError(EX_UNAVAILABLE,
                      "ranks on other machines need mpirun, which is not in PATH: load Open MPI "
                      "('module load openmpi'), or name it in the site file");
  }
  if (plan.ranks.size() == 1) return {"local", "one rank needs no mpirun"};
  if (has_mpirun) return {"mpirun", "it is installed"};
  return {"local", "mpirun is not installed"};
}

}  // namespace launcher
