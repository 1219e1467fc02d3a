// SPDX-License-Identifier: Apache-2.0

#include "launcher/spawn/slurm_for_mpirun.h"

#include <algorithm>
#include <optional>

#include "launcher/slurm/slurm_variables.h"
#include "rankfile/hostlist.h"

namespace launcher {
namespace {

constexpr char kGpusPerTask[] = "SLURM_GPUS_PER_TASK";
constexpr char kTresPerTask[] = "SLURM_TRES_PER_TASK";  // the same in later versions of Slurm
constexpr char kTresBind[] = "SLURM_TRES_BIND";         // comes with it

constexpr char kArgumentsOfOrte[] = "OMPI_MCA_plm_slurm_args";
// The value that Slurm itself gives it from 23.11 on, so that srun knows that mpirun starts it.
constexpr char kArgumentsOfSlurm[] = "--external-launcher";

std::string GpusArgument(int gpus) { return "--gpus=" + std::to_string(gpus); }

// The GPUs of the job on all nodes but this one; nullopt where neither --gpus nor --gpus-per-task
// has asked for them.
std::optional<int> GpusElsewhere(const Environment& environment) {
  const auto count = [&](const char* name) {
    const auto text = FindVariable(environment, name);
    return text ? TryParseGpuCount(*text) : std::nullopt;
  };
  const auto here = count("SLURM_GPUS_ON_NODE");
  if (!here) return std::nullopt;
  if (const auto job = count("SLURM_GPUS")) return *job - *here;
  auto per_task = count(kGpusPerTask);
  if (const auto tres = FindVariable(environment, kTresPerTask); tres && !per_task) {
    per_task = ParseTresPerTask(*tres).gpus;
  }
  const auto tasks = count("SLURM_NTASKS");
  if (!per_task || !tasks) return std::nullopt;
  return *per_task * *tasks - *here;
}

// The GPUs that the srun of the daemons must ask for; 0 where it is left as it is, because the user
// or the job says it already.
int GpusOfDaemons(const Environment& environment, MpiRuntime runtime) {
  const std::string set = FindVariable(environment, kArgumentsOfOrte).value_or("");
  const bool is_users = runtime == MpiRuntime::kOrte && !set.empty() && set != kArgumentsOfSlurm;
  return is_users ? 0 : std::max(0, GpusElsewhere(environment).value_or(0));
}

}  // namespace

std::map<std::string, std::string> SlurmVariablesForMpirun(const std::vector<HostSlots>& hosts,
                                                           const Environment& environment,
                                                           MpiRuntime runtime) {
  std::vector<std::string> names;
  std::string tasks;
  for (std::size_t i = 0; i < hosts.size();) {
    std::size_t end = i;
    while (end < hosts.size() && hosts[end].slots == hosts[i].slots)
      names.push_back(hosts[end++].host);
    tasks += (tasks.empty() ? "" : ",") + std::to_string(hosts[i].slots);
    if (end - i > 1) tasks += "(x" + std::to_string(end - i) + ")";
    i = end;
  }
  std::map<std::string, std::string> variables = {
      {"SLURM_NODELIST", rankfile::CompressHostlist(names)}, {"SLURM_TASKS_PER_NODE", tasks}};
  const int gpus = GpusOfDaemons(environment, runtime);
  if (runtime == MpiRuntime::kOrte && gpus > 0) {
    const std::string set = FindVariable(environment, kArgumentsOfOrte).value_or("");
    variables[kArgumentsOfOrte] = (set.empty() ? "" : set + " ") + GpusArgument(gpus);
  }
  return variables;
}

std::vector<std::string> SlurmVariablesAgainstMpirun(const Environment& environment,
                                                     MpiRuntime runtime) {
  std::vector<std::string> names;
  if (GpusOfDaemons(environment, runtime) == 0) return names;
  for (const char* name : {kGpusPerTask, kTresPerTask, kTresBind}) {
    if (environment.contains(name)) names.emplace_back(name);
  }
  return names;
}

std::vector<std::string> SlurmOptionsForMpirun(const Environment& environment, MpiRuntime runtime) {
  const int gpus = GpusOfDaemons(environment, runtime);
  if (runtime == MpiRuntime::kOrte || gpus == 0) return {};
  return {"--prtemca", "plm_slurm_args", GpusArgument(gpus)};
}

}  // namespace launcher
