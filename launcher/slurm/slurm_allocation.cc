// SPDX-License-Identifier: Apache-2.0
#include "launcher/slurm/slurm_allocation.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "launcher/base/error.h"
#include "launcher/base/messages.h"
#include "launcher/slurm/slurm_gpus.h"
#include "rankfile/hostlist.h"
#include "rankfile/placement.h"
#include "rankfile/scanner.h"
#include "support/number.h"

namespace launcher {
namespace {

constexpr int kMaxComponents = 1024;

// Higher step ids are not those of srun's steps, but of the batch script or of the shell of salloc
// on a compute node.
constexpr unsigned long long kFirstSpecialStep = 0xfffffff0;

// Whether SLURM_STEP_ID is that of a step of srun.  Since Slurm 26.05 batch scripts have the step
// id -5; the shell of salloc on a compute node has 4294967290.
bool IsStepOfSrun(const Environment& environment) {
  const std::optional<std::string> step = FindVariable(environment, "SLURM_STEP_ID");
  if (!step || step->starts_with('-')) return false;
  const auto step_id = support::WholeNumber<unsigned long long>(*step);
  // Only steps of srun have this variable as well.
  if (!step_id) return FindVariable(environment, "SLURM_STEP_NUM_TASKS").has_value();
  return *step_id < kFirstSpecialStep;
}

// True inside the only task of a step, and in a shell of srun --pty, whose other tasks have no
// terminal and end at once.  Inside one of several tasks ddlrun is refused.
bool IsInsideStep(const Environment& environment) {
  if (!IsStepOfSrun(environment)) return false;
  const std::string task = FindVariable(environment, "SLURM_PROCID").value_or("0");
  if (FindVariable(environment, "SLURM_PTY_PORT") && task == "0") return true;
  std::string tasks = "several";
  for (const char* name : {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}) {
    const std::optional<std::string> text = FindVariable(environment, name);
    const std::optional<int> count = text ? TryParseCount(*text) : std::nullopt;
    if (!count) continue;
    if (*count <= 1) return true;
    tasks = Show(name, *text);
    break;
  }
  if (tasks == "several" && task == "0") return true;
  throw LaunchError(EX_CONFIG, "ddlrun runs inside a step of srun, as task " + task.substr(0, 10) +
                                   " of " + tasks +
                                   ", and would start the job once per task: write `ddlrun "
                                   "PROGRAM` without srun in the batch script" +
                                   kMaybeInherited);
}

std::vector<std::string> ReadHosts(const Environment& environment, const std::string& suffix,
                                   bool in_step, std::string* origin_text) {
  std::string name = "SLURM_JOB_NODELIST" + suffix;
  std::optional<std::string> list = FindVariable(environment, name);
  if (!list) {
    throw LaunchError(EX_CONFIG,
                      name +
                          " is missing although SLURM_JOB_ID is set: run ddlrun with the "
                          "environment of the batch script (#SBATCH --export=ALL)");
  }
  if (!origin_text->empty()) *origin_text += " ";
  *origin_text += Show(name, *list);
  std::vector<std::string> hosts;
  try {
    hosts = rankfile::ExpandHostlist(*list, name);
  } catch (const rankfile::ParseError& error) {
    throw LaunchError(EX_CONFIG, error.what());
  }
  if (hosts.empty()) throw LaunchError(EX_CONFIG, Show(name, *list) + " names no host");
  std::set<std::string> seen;
  for (const std::string& host : hosts) {
    if (!seen.insert(host).second) {
      throw LaunchError(EX_CONFIG, Show(name, *list) + " names " + host + " twice");
    }
  }
  std::vector<std::string> count_names = {"SLURM_JOB_NUM_NODES"};
  if (!in_step) count_names.emplace_back("SLURM_NNODES");  // inside a step, that of the step
  for (const std::string& count_name : count_names) {
    const std::string full_name = count_name + suffix;
    const std::optional<std::string> text = FindVariable(environment, full_name);
    const std::optional<int> count = text ? TryParseCount(*text) : std::nullopt;
    if (count && *count != static_cast<int>(hosts.size())) {
      Contradict(Show(full_name, *text), Show(name, *list),
                 "submit again with #SBATCH --nodes=" + std::to_string(hosts.size()) +
                     ", and do not set either variable yourself");
    }
  }
  return hosts;
}

// A list with one count per node, or nullopt where it is not set or in no known form.
std::optional<std::vector<int>> ReadPerNode(const Environment& environment, const std::string& name,
                                            std::size_t node_count) {
  const std::optional<std::string> text = FindVariable(environment, name);
  std::optional<std::vector<int>> counts = text ? TryParseCountList(*text) : std::nullopt;
  if (counts && counts->size() != node_count) {
    Contradict(Show(name, *text) + " (" + std::to_string(counts->size()) + " nodes)",
               "the " + std::to_string(node_count) + " nodes of the node list",
               "submit again with #SBATCH --nodes=" + std::to_string(node_count));
  }
  return counts;
}

// How many tasks were asked for on each node, or nullopt where none were.
std::optional<std::vector<int>> ReadTasks(const Environment& environment, const std::string& suffix,
                                          std::size_t node_count) {
  const std::string list_name = "SLURM_TASKS_PER_NODE" + suffix;
  const std::string total_name = "SLURM_NTASKS" + suffix;
  const std::string each_name = "SLURM_NTASKS_PER_NODE" + suffix;
  const std::optional<std::vector<int>> list = ReadPerNode(environment, list_name, node_count);
  const std::optional<std::string> total = FindVariable(environment, total_name);
  const std::optional<std::string> each = FindVariable(environment, each_name);
  if (!total && !each) return std::nullopt;

  const std::string wanted = total ? Show(total_name, *total) : Show(each_name, *each);
  const std::string list_text =
      list ? Show(list_name, *FindVariable(environment, list_name)) : wanted;
  const std::string hint =
      "write #SBATCH --ntasks-per-node=N, or leave tasks out of the sbatch "
      "line to get one rank per GPU";
  std::optional<int> max;
  if (each) max = total ? TryParseCount(*each) : ParseCount(each_name, *each);
  std::vector<int> tasks;
  if (total && list) {
    tasks = *list;
  } else if (total && node_count == 1) {
    tasks = {ParseCount(total_name, *total)};
  } else if (max) {
    tasks.assign(node_count, *max);
  } else {
    throw LaunchError(EX_CONFIG, list_name + " is missing beside " + wanted + ": " + hint);
  }
  if (total && std::accumulate(tasks.begin(), tasks.end(), 0LL) != ParseCount(total_name, *total)) {
    Contradict(wanted, list ? list_text : Show(each_name, each.value_or("")), hint);
  }
  // Beside --ntasks, --ntasks-per-node is the largest number of tasks of a node.
  if (max && *std::max_element(tasks.begin(), tasks.end()) > *max) {
    Contradict(Show(each_name, *each), list_text, hint);
  }
  if (*std::min_element(tasks.begin(), tasks.end()) < 1) {
    throw LaunchError(EX_CONFIG, wanted + " leaves a node without a task: " + hint);
  }
  return tasks;
}

void ReadCpusPerTask(const Environment& environment, const std::string& suffix,
                     Allocation* allocation) {
  std::string name = "SLURM_CPUS_PER_TASK" + suffix;
  std::optional<std::string> text = FindVariable(environment, name);
  int cpus = text ? TryParseCount(*text).value_or(0) : 0;
  if (cpus < 1) {
    name = "SLURM_TRES_PER_TASK" + suffix;
    text = FindVariable(environment, name);
    cpus = text ? ParseTresPerTask(*text).cpus.value_or(0) : 0;
  }
  if (cpus < 1) return;
  if (allocation->cpus_per_rank && *allocation->cpus_per_rank != cpus) {
    Contradict(Show(name, *text),
               std::to_string(*allocation->cpus_per_rank) +
                   " CPUs per task of another component of the heterogeneous job",
               "write the same --cpus-per-task for every component");
  }
  allocation->cpus_per_rank = cpus;
}

// Adds the nodes of the job, or of the component that `suffix` names.
void ReadComponent(const Environment& environment, int component, const std::string& suffix,
                   Allocation* allocation) {
  const bool in_step = allocation->in_step;
  const std::vector<std::string> hosts =
      ReadHosts(environment, suffix, in_step, &allocation->origin_text);
  ReadPerNode(environment, "SLURM_JOB_CPUS_PER_NODE" + suffix, hosts.size());
  std::optional<std::vector<int>> tasks;
  if (!in_step) {  // inside a step these variables are about the step
    tasks = ReadTasks(environment, suffix, hosts.size());
    ReadCpusPerTask(environment, suffix, allocation);
  }
  std::vector<AllocatedNode> nodes;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    AllocatedNode node;
    node.host = hosts[i];
    node.component = component;
    if (tasks) node.slots = (*tasks)[i];
    nodes.push_back(std::move(node));
  }
  const std::string unclear = ReadGpus(environment, suffix, &nodes);
  if (!unclear.empty()) allocation->gpus_unclear = unclear;
  for (AllocatedNode& node : nodes) allocation->nodes.push_back(std::move(node));
}

// Refuses a host that two components have.  A host that one list names twice was refused before.
void RejectSharedHosts(const Allocation& allocation) {
  std::map<std::string, int> component_of;
  for (const AllocatedNode& node : allocation.nodes) {
    const auto [place, is_new] = component_of.emplace(node.host, node.component);
    if (is_new) continue;
    throw LaunchError(EX_CONFIG, node.host + " is in components " + std::to_string(place->second) +
                                     " and " + std::to_string(node.component) +
                                     " of the heterogeneous job (" + allocation.origin_text +
                                     "): ask for nodes of their own for each component");
  }
}

}  // namespace

std::optional<Allocation> ReadSlurmAllocation(const Environment& environment) {
  const std::optional<std::string> job_id = FindVariable(environment, "SLURM_JOB_ID");
  if (!job_id) return std::nullopt;
  Allocation allocation;
  allocation.in_step = IsInsideStep(environment);
  allocation.origin = Allocation::Origin::kSlurm;
  allocation.job_id = std::to_string(ParseCount("SLURM_JOB_ID", *job_id));
  const std::optional<std::string> het_size = FindVariable(environment, "SLURM_HET_SIZE");
  if (het_size) {
    const int components = ParseCount("SLURM_HET_SIZE", *het_size);
    if (components < 1 || components > kMaxComponents) {
      throw LaunchError(EX_CONFIG, Show("SLURM_HET_SIZE", *het_size) + ": expected 1 to " +
                                       std::to_string(kMaxComponents));
    }
    for (int i = 0; i < components; ++i) {
      ReadComponent(environment, i, "_HET_GROUP_" + std::to_string(i), &allocation);
    }
    RejectSharedHosts(allocation);
  } else {
    ReadComponent(environment, 0, "", &allocation);
  }
  for (const AllocatedNode& node : allocation.nodes) allocation.hosts_of_job.push_back(node.host);
  const bool all_slots =
      std::all_of(allocation.nodes.begin(), allocation.nodes.end(),
                  [](const AllocatedNode& node) { return node.slots.has_value(); });
  if (all_slots) {
    long long ranks = 0;
    for (const AllocatedNode& node : allocation.nodes) ranks += *node.slots;
    if (ranks > rankfile::kMaxRanks) {
      throw LaunchError(EX_CONFIG, std::to_string(ranks) + " tasks (" + allocation.origin_text +
                                       "): at most " + std::to_string(rankfile::kMaxRanks) +
                                       " are possible");
    }
    allocation.ranks = static_cast<int>(ranks);
  }
  return allocation;
}

}  // namespace launcher
