// SPDX-License-Identifier: Apache-2.0

#include "trainer/program/launch_environment.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "support/cpu_quota.h"
#include "support/number.h"
#include "trainer/core/error.h"

namespace trainer {

std::optional<std::string> EnvironmentVariable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

int CpusOfRank(int usable, int online, int local_world_size) {
  return usable < online ? usable : std::max(1, usable / std::max(1, local_world_size));
}

int ThreadsOfRank(int local_world_size) {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int usable = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
  const int online = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  const int cpus = CpusOfRank(usable, online, local_world_size);
  return std::max(1, support::ThreadsWithinQuota("", cpus, std::max(1, local_world_size)));
}

launcher::RankInfo ReadRank(const EnvironmentLookup& get) {
  try {
    return launcher::ReadRankEnvironment(get);
  } catch (const std::runtime_error& error) {
    throw Error(EX_CONFIG, error.what());
  }
}

std::string SliceOfGpu(const EnvironmentLookup& get) {
  const std::string visible = get("CUDA_VISIBLE_DEVICES").value_or("");
  return visible.starts_with("MIG-") ? visible.substr(0, visible.find(',')) : "";
}

int StartedTasks(const EnvironmentLookup& get) {
  // Steps of srun come last: the daemons of mpirun and mpiexec may be tasks of one, and their ranks
  // inherit its variables.
  for (const bool makes_step : {false, true}) {
    for (const launcher::LauncherTraits& launcher : launcher::kLaunchers) {
      if (launcher.makes_step != makes_step || launcher.is_direct) continue;
      const std::string name = launcher.world_size_variable;
      const auto value = get(name);
      if (!value) continue;
      if (const auto number = support::WholeNumber<int>(*value)) return *number;
      throw Error(EX_CONFIG, name + "=" + *value + " is not a number of ranks: unset it");
    }
  }
  return 0;
}

CommOptions MakeCommOptions(const launcher::RankInfo& rank, const EnvironmentLookup& get,
                            SpanRecorder* spans) {
  CommOptions comm;
  comm.rank = rank.rank;
  comm.size = rank.world_size;
  comm.launcher = rank.launcher;
  comm.pmi = rank.pmi;
  comm.is_one_node = rank.local_world_size == rank.world_size;
  comm.run_dir = rank.run_dir;
  comm.restart_count = rank.restart_count;
  comm.started_tasks = StartedTasks(get);
  comm.leaves_out_han = !get("OMPI_MCA_coll_han_priority") && !get("OMPI_MCA_coll");
  comm.spans = spans;
  return comm;
}

}  // namespace trainer
