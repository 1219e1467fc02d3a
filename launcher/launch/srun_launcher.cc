// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <iterator>
#include <set>

#include "launcher/base/error.h"
#include "launcher/launch/child_environment.h"
#include "launcher/launch/launcher.h"
#include "launcher/protocol/rank_variables.h"
#include "launcher/system/run_directory.h"
#include "rankfile/hostlist.h"

namespace launcher {
namespace {

// How Slurm's PMIx servers pass a fence on.  By the default, a tree, a fence without data, as at
// the end of MPI_Init, lets everybody through before all have come; a ring waits for all.  Seen
// with 22.05 and 24.11 (doc/decisions/0014, 0015).
constexpr char kFenceOfPmix[] = "SLURM_PMIX_FENCE";

constexpr char kNodesOfJob[] = "SLURM_JOB_NODELIST";

using NodeIterator = std::vector<NodePlacement>::const_iterator;

bool IsHeterogeneous(const LaunchPlan& plan) {
  return plan.nodes.front().component != plan.nodes.back().component;
}

// The TASKFILE of a component: the whole one where the job has no other.
std::string TaskfileName(const LaunchPlan& plan, int component) {
  return IsHeterogeneous(plan) ? std::string(kTaskfileName) + "." + std::to_string(component)
                               : kTaskfileName;
}

// srun numbers the tasks of a heterogeneous job component by component.
void RequireOrderOfComponents(const LaunchPlan& plan) {
  const auto component = [&plan](const RankPlacement& rank) {
    return plan.nodes[static_cast<std::size_t>(rank.node)].component;
  };
  if (std::ranges::is_sorted(plan.ranks, {}, component)) return;
  throw LaunchError(EX_CONFIG,
                    "srun numbers the ranks of a heterogeneous job component by component: leave "
                    "out --rank-order=cyclic, and name the hosts of -H in this order");
}

// Where the tasks of the nodes [first, last) go, which are all of the plan, or one component of the
// job.  By any other --distribution than arbitrary, Slurm 26.05 lays tasks out by its topology
// plugin, in an order of nodes that no variable tells (_task_layout_topo of its
// slurm_step_layout.c; seen with topology/tree and topology/block).  The file says how many nodes
// there are, and Slurm 24.11 refuses --nodes beside it.
std::vector<std::string> PlacementArguments(const LaunchRequest& job, NodeIterator first,
                                            NodeIterator last) {
  std::size_t tasks = 0;
  int gpus = 0;
  bool has_same_gpus = true;
  for (NodeIterator node = first; node != last; ++node) {
    tasks += node->ranks.size();
    gpus += node->gpus;
    has_same_gpus = has_same_gpus && node->gpus == first->gpus;
  }
  std::vector<std::string> arguments = {
      "--ntasks=" + std::to_string(tasks), "--distribution=arbitrary",
      "--nodelist=" + job.run_directory + "/" + TaskfileName(job.plan, first->component)};
  // Every task gets all GPUs of its node, whatever the job has asked for per task.  By a total
  // (--gpus), each node gives the GPUs that the job has there; only a number per node holds as well
  // in a step that shares them with another step.
  if (gpus > 0) {
    arguments.push_back(has_same_gpus ? "--gpus-per-node=" + std::to_string(first->gpus)
                                      : "--gpus=" + std::to_string(gpus));
  }
  return arguments;
}

// The hosts that have ranks, in Slurm's order; none if these are all nodes of the job, or not all
// of them are known by the job's names.
std::vector<std::string> HostsOfPartialStep(const LaunchRequest& job) {
  std::set<std::string> with_ranks;
  for (const NodePlacement& node : job.plan.nodes) {
    if (!node.ranks.empty()) with_ranks.insert(node.host);
  }
  std::vector<std::string> hosts;
  std::ranges::copy_if(job.hosts_of_job, std::back_inserter(hosts),
                       [&](const std::string& host) { return with_ranks.contains(host); });
  const bool is_partial =
      hosts.size() == with_ranks.size() && hosts.size() < job.hosts_of_job.size();
  return is_partial ? hosts : std::vector<std::string>();
}

// When two PMIx servers have asked each other for a connection, one shall open it: each compares
// the other's number among the nodes of the job with its own among those of the step
// (pmixp_dconn_require_connect of Slurm 20.11 to 26.05).  In a step without the first node of the
// job both wait, for ever: some in a hundred starts on two nodes.  The servers take the nodes of
// the job from the environment, where the shim puts the right ones back for the program.
void NumberNodesByStep(const LaunchRequest& job, Environment& environment) {
  const std::vector<std::string> hosts = HostsOfPartialStep(job);
  if (hosts.empty()) return;
  environment.try_emplace(kNodesOfJob, rankfile::CompressHostlist(job.hosts_of_job));
  environment[kNodesOfJobVariable] = environment[kNodesOfJob];
  environment[kNodesOfJob] = rankfile::CompressHostlist(hosts);
}

}  // namespace

std::map<std::string, std::string> Taskfiles(const LaunchPlan& plan) {
  std::map<std::string, std::string> files;
  for (const RankPlacement& rank : plan.ranks) {
    const NodePlacement& node = plan.nodes[static_cast<std::size_t>(rank.node)];
    files[kTaskfileName] += node.host + "\n";
    if (IsHeterogeneous(plan)) files[TaskfileName(plan, node.component)] += node.host + "\n";
  }
  return files;
}

std::vector<ChildCommand> MakeSrunCommands(const LaunchRequest& job) {
  ChildCommand command;
  command.launcher = &TraitsOf("srun");
  std::vector<std::string>& argv = command.argv;
  const auto append = [&argv](const std::vector<std::string>& words) {
    argv.insert(argv.end(), words.begin(), words.end());
  };
  append({job.srun});
  const std::vector<NodePlacement>& nodes = job.plan.nodes;
  const bool is_heterogeneous = IsHeterogeneous(job.plan);
  RequireOrderOfComponents(job.plan);
  for (NodeIterator first = nodes.begin(); first != nodes.end();) {
    const NodeIterator last = std::find_if(first, nodes.end(), [&](const NodePlacement& node) {
      return node.component != first->component;
    });
    if (first != nodes.begin()) append({":"});
    if (is_heterogeneous || first->component > 0)
      append({"--het-group=" + std::to_string(first->component)});
    append(job.srun_arguments);  // in front of ours, of which srun takes the last
    append({"--mpi=" + job.mpi_type});
    append(PlacementArguments(job, first, last));
    // Where no CPUs were asked for, a job may have a single CPU on each node.  The shim binds the
    // ranks to what there is.  A rank that fails ends the others.
    append({"--overcommit", "--kill-on-bad-exit=1", "--export=ALL"});
    // Rank 0 gets standard input, as under mpirun; srun would give all of it to every task.
    append({first == nodes.begin() ? "--input=0" : "--input=none"});
    if (job.in_step || job.has_lost_nodes) append({"--overlap"});
    // --overlap does not share memory with the other step; with 0 the step may use all of the
    // job's.
    if (job.has_lost_nodes) append({"--mem=0"});
    append({job.shim, "--"});
    append(WithMoreColons(job.program));
    first = last;
  }

  Environment environment = EnvironmentForSrun(job.environment);
  // Slurm 20.11 takes the number of nodes of the first component for that of every component, and
  // refuses the others.
  if (is_heterogeneous) environment.erase("SLURM_JOB_NUM_NODES");
  for (const auto& [name, value] : job.rank_settings) environment[name] = value;
  // srun would bind each task to its share of the CPUs; the shim binds the ranks.
  environment["SLURM_CPU_BIND"] = "none";
  if (job.mpi_type.starts_with("pmix")) {
    environment.try_emplace(kFenceOfPmix, "ring");
    if (!is_heterogeneous) NumberNodesByStep(job, environment);
  }
  command.environment = ToStrings(environment);
  return {command};
}

}  // namespace launcher
