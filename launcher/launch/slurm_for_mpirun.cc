// SPDX-License-Identifier: Apache-2.0

#include "launcher/launch/slurm_for_mpirun.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "launcher/base/error.h"
#include "launcher/launch/child_environment.h"
#include "launcher/slurm/slurm_variables.h"
#include "rankfile/hostlist.h"

namespace launcher {
namespace {

constexpr char kSlurmArguments[] = "plm_slurm_args";
constexpr char kArgumentsOfOrte[] = "OMPI_MCA_plm_slurm_args";
// The value that Slurm itself gives it from 23.11 on, so that srun knows that mpirun starts it.
constexpr char kArgumentsOfSlurm[] = "--external-launcher";

// The user's own plm_slurm_args: the place of their value among mpirun's options, else nullptr.
std::string* UsersArguments(std::vector<std::string>* mpirun_args) {
  const auto name = std::find(mpirun_args->begin(), mpirun_args->end(), kSlurmArguments);
  return name == mpirun_args->end() || name + 1 == mpirun_args->end() ? nullptr : &name[1];
}

// The GPUs of a job of --gpus on all nodes but this one; nullopt for other jobs, and where `hosts`
// are not all of its nodes.
std::optional<int> RestOfTotal(const std::vector<HostSlots>& hosts,
                               const Environment& environment) {
  const auto count = [&](const char* name) {
    const auto text = FindVariable(environment, name);
    return text ? TryParseGpuCount(*text) : std::nullopt;
  };
  const auto total = count("SLURM_GPUS");
  const auto here = count("SLURM_GPUS_ON_NODE");
  if (!total || !here || count("SLURM_JOB_NUM_NODES") != static_cast<int>(hosts.size())) {
    return std::nullopt;
  }
  if (*here > *total) return std::nullopt;  // the job has whole nodes, whatever it asked for
  return *total - *here;
}

// What the srun of the daemons must ask for; "" where there are no GPUs on their nodes.  This node
// needs no daemon.
std::string GpusOfDaemons(const std::vector<HostSlots>& hosts, const Environment& environment) {
  const std::string here = ValueOr(environment, "SLURMD_NODENAME", "");
  std::vector<int> gpus;
  for (const HostSlots& host : hosts) {
    if (host.host != here) gpus.push_back(host.gpus);
  }
  // The nodes of which nobody knows more were taken to be like the first, but a total is exact.
  const int sum = std::accumulate(gpus.begin(), gpus.end(), 0);
  const int requested = std::max(0, RestOfTotal(hosts, environment).value_or(sum));
  if (requested == 0) return "";
  const bool is_same = requested == sum && std::count(gpus.begin(), gpus.end(), gpus[0]) ==
                                               static_cast<std::ptrdiff_t>(gpus.size());
  return is_same ? "--gpus-per-node=" + std::to_string(gpus[0])
                 : "--gpus=" + std::to_string(requested);
}

// Where srun must start the daemons: mpirun itself names no nodes to it where it takes all of its
// own list to be all of the job, and srun would take the first nodes of the job; nor does it name
// the component of a heterogeneous job.  "" where there is no choice.
std::string NodesOfDaemons(const std::vector<HostSlots>& hosts, std::size_t nodes_of_job,
                           const Environment& environment) {
  const std::string here = ValueOr(environment, "SLURMD_NODENAME", "");
  std::vector<std::string> names;
  const HostSlots* first = nullptr;
  for (const HostSlots& host : hosts) {
    if (host.host == here) continue;
    if (first == nullptr) first = &host;
    names.push_back(host.host);
    if (host.component != first->component) {
      throw LaunchError(EX_CONFIG,
                        "mpirun starts its daemons in one component of a heterogeneous "
                        "job, and " +
                            first->host + " and " + host.host +
                            " are in two: use --launcher=srun, or name hosts of one by -H");
    }
  }
  if (names.empty()) return "";
  std::vector<std::string> words;
  if (environment.contains("SLURM_HET_SIZE")) {
    words.push_back("--het-group=" + std::to_string(first->component));
  }
  if (hosts.size() < nodes_of_job)
    words.push_back("--nodelist=" + rankfile::CompressHostlist(names));
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

// Variables are words of env, and PRRTE has arguments instead.
void RejectTooLong(const std::string& name, const std::string& value) {
  const std::size_t bytes = name.size() + value.size() + 2;  // NAME=value and its end
  if (bytes <= kMaxVariableBytes) return;
  throw LaunchError(EX_CONFIG,
                    "mpirun needs " + name + " with " + std::to_string(bytes) +
                        " bytes, and Linux passes at most " + std::to_string(kMaxVariableBytes) +
                        " in one variable or argument: use --launcher=srun, or fewer nodes, or "
                        "nodes that follow each other in Slurm's order (-H, --hostfile)");
}

}  // namespace

SlurmForMpirun MakeSlurmForMpirun(const std::vector<HostSlots>& hosts, std::size_t nodes_of_job,
                                  const Environment& environment, MpiRuntime runtime,
                                  const std::vector<std::string>& mpirun_args) {
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
  SlurmForMpirun result;
  result.mpirun_args = mpirun_args;
  result.variables = {{"SLURM_NODELIST", rankfile::CompressHostlist(names)},
                      {"SLURM_TASKS_PER_NODE", tasks}};
  for (const auto& [name, value] : result.variables) RejectTooLong(name, value);
  const bool is_orte = runtime == MpiRuntime::kOrte;
  std::string set = is_orte ? FindVariable(environment, kArgumentsOfOrte).value_or("") : "";
  std::string* const users_words = UsersArguments(&result.mpirun_args);
  const bool are_users = users_words != nullptr || (!set.empty() && set != kArgumentsOfSlurm);

  std::string arguments = NodesOfDaemons(hosts, nodes_of_job, environment);
  const std::string gpus = are_users ? "" : GpusOfDaemons(hosts, environment);
  if (!gpus.empty()) {
    arguments += (arguments.empty() ? "" : " ") + gpus;
    for (const auto& [name, value] : environment) {
      if (ExportPolicyOf(name) == ExportPolicy::kGpusOfSrun) result.hidden.push_back(name);
    }
  }
  if (arguments.empty()) return result;
  const std::string before = users_words != nullptr ? *users_words : set;
  const std::string value = (before.empty() ? "" : before + " ") + arguments;
  RejectTooLong(is_orte ? kArgumentsOfOrte : kSlurmArguments, value);
  if (users_words != nullptr) {
    *users_words = value;
  } else if (is_orte) {
    result.variables[kArgumentsOfOrte] = value;
  } else {
    result.options = {"--prtemca", kSlurmArguments, value};
  }
  return result;
}

}  // namespace launcher
