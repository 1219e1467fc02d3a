// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "launcher/base/error.h"
#include "launcher/spawn/child_environment.h"
#include "launcher/spawn/more_colons.h"
#include "launcher/spawn/spawner.h"
#include "launcher/system/run_directory.h"

namespace launcher {
namespace {

// How Slurm's PMIx servers pass a fence on.  By the default, a tree, a fence without data, as at
// the end of MPI_Init, lets everybody through before all have come; a ring waits for all.  Seen
// with 22.05 and 24.11 (doc/decisions/0014, 0015).
constexpr char kFenceOfPmix[] = "SLURM_PMIX_FENCE";

using NodeIterator = std::vector<NodePlan>::const_iterator;

// Whether ranks fill all nodes of the job, one after the other as Slurm numbers them.
bool IsInSlurmsOrder(const Job& job) {
  const std::vector<NodePlan>& nodes = job.plan.nodes;
  const std::vector<RankPlan>& ranks = job.plan.ranks;
  return std::equal(
             nodes.begin(), nodes.end(), job.hosts_of_job.begin(), job.hosts_of_job.end(),
             [](const NodePlan& node, const std::string& host) { return node.host == host; }) &&
         std::is_sorted(ranks.begin(), ranks.end(),
                        [](const RankPlan& a, const RankPlan& b) { return a.node < b.node; });
}

// The arguments for the nodes [first, last): all of the plan, or one component of the job.
std::vector<std::string> PlacementArguments(const Job& job, NodeIterator first, NodeIterator last) {
  std::size_t tasks = 0;
  int gpus = 0;
  bool has_same_gpus = true;
  for (NodeIterator node = first; node != last; ++node) {
    tasks += node->ranks.size();
    gpus += node->gpus;
    has_same_gpus = has_same_gpus && node->gpus == first->gpus;
  }
  const bool is_uniform = std::all_of(
      first, last, [&](const NodePlan& node) { return node.ranks.size() == first->ranks.size(); });
  const bool is_whole_plan = first == job.plan.nodes.begin() && last == job.plan.nodes.end();

  std::vector<std::string> arguments;
  if (is_uniform && IsInSlurmsOrder(job)) {
    arguments.push_back("--nodes=" + std::to_string(last - first));
    arguments.push_back("--ntasks=" + std::to_string(tasks));
    arguments.push_back("--ntasks-per-node=" + std::to_string(first->ranks.size()));
    arguments.emplace_back("--distribution=block");
  } else if (is_whole_plan) {
    // The file says how many nodes there are, and Slurm 24.11 refuses --nodes beside it.
    arguments.push_back("--ntasks=" + std::to_string(tasks));
    arguments.emplace_back("--distribution=arbitrary");
    arguments.push_back("--nodelist=" + job.run_directory + "/" + kTaskfileName);
  } else {
    throw LaunchError(EX_CONFIG,
                      "a heterogeneous job gets its ranks node by node and on all of its nodes, in "
                      "Slurm's order: leave out --rank-order=cyclic, -n and -H, or use "
                      "--launcher=mpirun");
  }
  // Every task gets all GPUs of its node, whatever the job has asked for per task.  By a total
  // (--gpus), each node gives the GPUs that the job has there; only a number per node holds as well
  // in a step that shares them with another step.
  if (gpus > 0) {
    arguments.push_back(has_same_gpus ? "--gpus-per-node=" + std::to_string(first->gpus)
                                      : "--gpus=" + std::to_string(gpus));
  }
  return arguments;
}

}  // namespace

std::string TaskfileText(const Plan& plan) {
  std::string text;
  for (const RankPlan& rank : plan.ranks) {
    text += plan.nodes[static_cast<std::size_t>(rank.node)].host + "\n";
  }
  return text;
}

std::vector<ChildCommand> MakeSrunCommands(const Job& job) {
  ChildCommand command;
  command.kind = ChildCommand::Kind::kSrun;
  std::vector<std::string>& argv = command.argv;
  const auto append = [&argv](const std::vector<std::string>& words) {
    argv.insert(argv.end(), words.begin(), words.end());
  };
  append({job.srun});
  const std::vector<NodePlan>& nodes = job.plan.nodes;
  const bool is_heterogeneous = nodes.front().component != nodes.back().component;
  for (NodeIterator first = nodes.begin(); first != nodes.end();) {
    const NodeIterator last = std::find_if(first, nodes.end(), [&](const NodePlan& node) {
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
    if (job.tag_output) append({"--label"});
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
  if (job.mpi_type.starts_with("pmix")) environment.try_emplace(kFenceOfPmix, "ring");
  command.environment = ToStrings(environment);
  return {command};
}

}  // namespace launcher
