// SPDX-License-Identifier: Apache-2.0

#include "launcher/bede/bede_mpirun.h"

#include <algorithm>
#include <limits>

#include "launcher/base/error.h"
#include "launcher/launch/child_environment.h"
#include "launcher/placement/launch_plan_files.h"
#include "launcher/placement/planner.h"
#include "rankfile/hostfile.h"

namespace launcher {
namespace {

constexpr char kThreadsVariable[] = "OMP_NUM_THREADS";

int Threads(const NodeTopology& topology, const std::vector<int>& cores) {
  int threads = 0;
  for (const int core : cores) threads += static_cast<int>(topology.cores[core].cpus.size());
  return threads;
}

// OMP_NUM_THREADS of a rank that has `cores`.
int ThreadsOf(const NodeTopology& topology, const std::vector<int>& cores, const BedePar& par) {
  switch (par.threads) {
    case ThreadShare::kCores:
      return std::max(1, static_cast<int>(cores.size()));
    case ThreadShare::kHardwareThreads:
      return std::max(1, Threads(topology, cores));
    case ThreadShare::kOne:
      break;
  }
  return 1;
}

[[noreturn]] void RejectWithoutGpu(const std::string& host) {
  throw LaunchError(EX_CONFIG, "--bede-par 1ppg: no GPU on " + host +
                                   ": ask for GPUs with '#SBATCH --gres=gpu:4', or for one rank "
                                   "per node with --bede-par 1ppn");
}

// Leaves it to the planner, which plans one rank per GPU when nothing else was asked for.
BedeLayout PlanByGpu(Allocation allocation, const NodeTopology& topology, const BedePar& par) {
  allocation.ranks.reset();
  allocation.cpus_per_rank.reset();
  for (AllocatedNode& node : allocation.nodes) {
    node.slots.reset();
    if (node.gpus == 0) RejectWithoutGpu(node.host);
  }
  const LaunchPlan plan = MakePlan(allocation, {topology}, PlacementOptions());

  BedeLayout result;
  result.ranks = static_cast<int>(plan.ranks.size());
  result.threads = std::numeric_limits<int>::max();
  for (const RankPlacement& rank : plan.ranks) {
    if (rank.gpu < 0) RejectWithoutGpu(plan.nodes[static_cast<std::size_t>(rank.node)].host);
    result.threads = std::min(result.threads, ThreadsOf(topology, rank.cores, par));
  }
  for (const NodePlacement& node : plan.nodes) {
    result.hosts.push_back(
        {node.host, static_cast<int>(node.ranks.size()), node.gpus, node.component});
  }
  result.rankfile = RankfileText(plan, {topology});
  result.warnings = plan.warnings;
  return result;
}

using Variables = std::map<std::string, std::string>;

Variables OrteParameters(const BedeJob& job) {
  Variables parameters;
  if (!job.in_slurm) parameters["orte_default_hostfile"] = job.hostfile;
  switch (job.par.ranks) {
    case RankShare::kNode:
      parameters["rmaps_base_mapping_policy"] = "slot";
      parameters["hwloc_base_binding_policy"] = "none";
      break;
    case RankShare::kGpu:
      parameters["orte_rankfile"] = job.rankfile;
      break;
    case RankShare::kCore:
      parameters["rmaps_base_mapping_policy"] = "core";
      parameters["hwloc_base_binding_policy"] = "core";
      break;
    case RankShare::kHardwareThread:
      parameters["hwloc_base_use_hwthreads_as_cpus"] = "1";
      parameters["rmaps_base_mapping_policy"] = "hwthread";
      parameters["hwloc_base_binding_policy"] = "hwthread";
      break;
  }
  return parameters;
}

Variables PrrteParameters(const BedeJob& job) {
  Variables parameters;
  if (!job.in_slurm) parameters["prte_default_hostfile"] = job.hostfile;
  switch (job.par.ranks) {
    case RankShare::kNode:
      parameters["hwloc_default_binding_policy"] = "none";
      break;
    case RankShare::kGpu:
      // Where a node has fewer cores than GPUs, ranks share cores.
      parameters["hwloc_default_binding_policy"] = ":overload-allowed";
      break;
    case RankShare::kCore:
      parameters["hwloc_default_binding_policy"] = "core";
      break;
    case RankShare::kHardwareThread:
      parameters["rmaps_default_mapping_policy"] = ":HWTCPUS";
      parameters["hwloc_default_binding_policy"] = "hwthread";
      break;
  }
  return parameters;
}

// With those of Slurm.
Variables MakeVariables(const BedeJob& job, Variables variables) {
  const bool is_prrte = job.mpi_runtime == MpiRuntime::kPrrte;
  for (const auto& [name, value] : is_prrte ? PrrteParameters(job) : OrteParameters(job)) {
    const std::string variable = (is_prrte ? "PRTE_MCA_" : "OMPI_MCA_") + name;
    if (!job.environment.contains(variable)) variables[variable] = value;
  }
  return variables;
}

}  // namespace

std::string HostfileText(const BedeLayout& plan) {
  std::vector<rankfile::HostfileEntry> entries;
  for (const HostSlots& host : plan.hosts) entries.push_back({host.host, host.slots, std::nullopt});
  return rankfile::FormatHostfile(entries);
}

BedeLayout PlanBede(const Allocation& allocation, const NodeTopology& topology,
                    const BedePar& par) {
  if (par.ranks == RankShare::kGpu) return PlanByGpu(allocation, topology, par);

  std::vector<int> all_cores;
  for (std::size_t i = 0; i < topology.cores.size(); ++i) all_cores.push_back(static_cast<int>(i));
  const std::vector<int> first_core = {0};
  BedeLayout plan;
  int per_node = 1;
  if (par.ranks == RankShare::kNode) {
    plan.threads = ThreadsOf(topology, all_cores, par);
  } else if (par.ranks == RankShare::kCore) {
    per_node = static_cast<int>(all_cores.size());
    plan.threads = ThreadsOf(topology, first_core, par);
  } else {
    per_node = Threads(topology, all_cores);
  }
  const AllocatedNode& first = allocation.nodes.front();
  for (const AllocatedNode& node : allocation.nodes) {
    const bool is_like_first = node.component == first.component;
    const int gpus = node.gpus ? *node.gpus : is_like_first ? first.gpus.value_or(0) : 0;
    plan.hosts.push_back({node.host, per_node, gpus, node.component});
  }
  plan.ranks = per_node * static_cast<int>(plan.hosts.size());
  return plan;
}

ChildCommand MakeBedeCommand(const BedeJob& job) {
  ChildCommand command;
  command.launcher = &TraitsOf("mpirun");
  const auto append = [&command](const std::vector<std::string>& words) {
    command.argv.insert(command.argv.end(), words.begin(), words.end());
  };
  SlurmForMpirun slurm;
  if (job.in_slurm) {
    std::vector<std::string> words = job.mpi_arguments;
    words.insert(words.end(), job.mpirun_args.begin(), job.mpirun_args.end());
    // All nodes of the job: there is no argument of the user's to add nodes to.
    slurm = MakeSlurmForMpirun(job.plan.hosts, job.plan.hosts.size(), job.environment,
                               job.mpi_runtime, words);
  }
  append({kEnv});
  for (const std::string& name : slurm.hidden) append({"-u", name});
  for (const auto& [name, value] : MakeVariables(job, slurm.variables)) {
    append({name + "=" + value});
  }
  append({job.mpirun});
  if (job.is_root) append({"--allow-run-as-root"});
  append(slurm.options);
  const bool users_threads =
      !job.par.are_threads_requested && job.environment.contains(kThreadsVariable);
  append({"-x", users_threads ? kThreadsVariable
                              : kThreadsVariable + ("=" + std::to_string(job.plan.threads))});
  for (const auto& [name, value] : job.rank_settings) append({"-x", name + "=" + value});
  if (job.mpi_runtime == MpiRuntime::kPrrte && job.par.ranks == RankShare::kGpu) {
    append({"--map-by", "rankfile:FILE=" + job.rankfile});
  }
  append(job.mpi_arguments);
  append(job.mpirun_args);

  Environment environment;
  for (const auto& [name, value] : job.environment) {
    if (!IsRankIdentity(name)) environment.emplace(name, value);
  }
  command.environment = ToStrings(environment);
  return command;
}

}  // namespace launcher
