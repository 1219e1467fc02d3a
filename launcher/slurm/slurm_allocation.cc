// SPDX-License-Identifier: Apache-2.0

#include "launcher/slurm/slurm_allocation.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "launcher/base/error.h"
#include "launcher/base/messages.h"
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
                          "environment of the batch script (#SBATCH --export=ALL); for ranks on "
                          "this machine alone: env -u SLURM_JOB_ID ddlrun ...");
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

namespace {

struct Found {
  std::string text;  // "NAME=value"
  int count = 0;
};

// The variables, as text, that are in a form that is not known, so that only scontrol can tell.
using Unreadable = std::string;

std::optional<Found> FindGpuCount(const Environment& environment, const std::string& name,
                                  Unreadable* unreadable) {
  const std::optional<std::string> value = FindVariable(environment, name);
  if (!value) return std::nullopt;
  const std::optional<int> count = TryParseGpuCount(*value);
  if (count) return Found{Show(name, *value), *count};
  *unreadable += (unreadable->empty() ? "" : ", ") + Show(name, *value);
  return std::nullopt;
}

std::optional<Found> FindGpusPerTask(const Environment& environment, const std::string& suffix,
                                     Unreadable* unreadable) {
  const std::string name = "SLURM_TRES_PER_TASK" + suffix;
  std::optional<Found> found =
      FindGpuCount(environment, "SLURM_GPUS_PER_TASK" + suffix, unreadable);
  const std::optional<std::string> tres = FindVariable(environment, name);
  if (found || !tres) return found;
  const std::optional<int> gpus = ParseTresPerTask(*tres).gpus;
  if (gpus) found = {Show(name, *tres), *gpus};
  return found;
}

// How many devices CUDA_VISIBLE_DEVICES names, by numbers or UUIDs.  If it is empty it names none.
std::optional<Found> FindVisibleDevices(const Environment& environment) {
  const auto found = environment.find("CUDA_VISIBLE_DEVICES");
  if (found == environment.end()) return std::nullopt;
  const std::string& value = found->second;
  const std::string text = Show("CUDA_VISIBLE_DEVICES", value);
  if (value.empty() || value == "-1" || value == "NoDevFiles") return Found{text, 0};
  return Found{text, static_cast<int>(std::count(value.begin(), value.end(), ',')) + 1};
}

// What the job was granted on this node, by the variables that are about this node only.
struct HereGrant {
  std::optional<Found> gpus;  // empty: they do not say
  std::vector<int> indices;   // empty: not known
};

HereGrant ReadHere(const Environment& environment, Unreadable* unreadable) {
  HereGrant here;
  Unreadable count_unreadable;
  here.gpus = FindGpuCount(environment, "SLURM_GPUS_ON_NODE", &count_unreadable);
  for (const char* name : {"SLURM_STEP_GPUS", "SLURM_JOB_GPUS"}) {
    const std::optional<std::string> value = FindVariable(environment, name);
    if (!value) continue;
    here.indices = ParseIndices(*value);
    if (here.indices.empty()) continue;
    const int count = static_cast<int>(here.indices.size());
    if (here.gpus && here.gpus->count != count) {
      Contradict(Show(name, *value), here.gpus->text, "set neither yourself");
    }
    if (!here.gpus) here.gpus = Found{Show(name, *value), count};
    break;
  }
  const std::optional<Found> visible = FindVisibleDevices(environment);
  if (visible && here.gpus && visible->count != here.gpus->count) {
    Contradict(visible->text, here.gpus->text,
               visible->count == 0
                   ? "unset CUDA_VISIBLE_DEVICES, or run without GPUs with ddlrun --accelerators 0"
                   : "unset CUDA_VISIBLE_DEVICES, or write --gres=gpu:" +
                         std::to_string(visible->count) + " in the sbatch line");
  }
  // On a compute node Slurm sets a variable when it has granted any GPU.  Where it has not, but
  // devices are visible, the site lets its users share the GPUs without Slurm.
  if (!here.gpus && !count_unreadable.empty()) {
    *unreadable += (unreadable->empty() ? "" : ", ") + count_unreadable;
  } else if (!here.gpus && !visible && FindVariable(environment, "SLURMD_NODENAME")) {
    here.gpus = Found{"no SLURM_GPUS_ON_NODE", 0};
  }
  return here;
}

// The node that this runs on.  nullptr where it is none of `nodes`: the shell of salloc runs where
// the job was submitted, and this node may belong to another component of a heterogeneous job.
AllocatedNode* FindHere(const Environment& environment, const std::string& suffix,
                        std::vector<AllocatedNode>* nodes) {
  const std::optional<std::string> name = FindVariable(environment, "SLURMD_NODENAME");
  if (!name) return nullptr;
  for (AllocatedNode& node : *nodes) {
    if (node.host == *name) return &node;
  }
  if (suffix.empty()) {
    Contradict(Show("SLURMD_NODENAME", *name),
               "SLURM_JOB_NODELIST, which begins with " + nodes->front().host,
               "run ddlrun on a node of the job, with the environment of its batch script");
  }
  return nullptr;
}

// Sets the GPUs of all nodes from the variables that are about all of them.
std::optional<Found> ReadEverywhere(const Environment& environment, const std::string& suffix,
                                    std::vector<AllocatedNode>* nodes, Unreadable* unreadable) {
  const std::optional<Found> per_node =
      FindGpuCount(environment, "SLURM_GPUS_PER_NODE" + suffix, unreadable);
  const std::optional<Found> per_task = FindGpusPerTask(environment, suffix, unreadable);
  for (AllocatedNode& node : *nodes) {
    if (per_node) node.gpus = per_node->count;
    if (!per_task || !node.slots) continue;
    const long long for_tasks = 1LL * per_task->count * *node.slots;
    if (per_node && for_tasks > per_node->count) {
      Contradict(
          per_task->text + " for the " + std::to_string(*node.slots) + " tasks on " + node.host,
          per_node->text, "write --gpus-per-node=" + std::to_string(for_tasks));
    }
    if (!per_node)
      node.gpus = static_cast<int>(std::min<long long>(for_tasks, std::numeric_limits<int>::max()));
  }
  return per_node ? per_node : per_task;
}

// Applies SLURM_GPUS, the total of the job, from which the GPUs of a single node without any number
// follow.  Returns "", or why the GPUs of the others are unclear.
std::string ApplyTotal(const Found& total, const AllocatedNode* here,
                       std::vector<AllocatedNode>* nodes) {
  int known = 0;
  AllocatedNode* unknown = nullptr;
  int unknown_count = 0;
  for (AllocatedNode& node : *nodes) {
    if (node.gpus) {
      known += *node.gpus;
    } else {
      unknown = &node;
      ++unknown_count;
    }
  }
  // The job has whole nodes (OverSubscribe=EXCLUSIVE), whatever it asked for.
  if (here != nullptr && here->gpus.value_or(0) > total.count) {
    return total.text + ", but " + here->host + " alone has " + std::to_string(*here->gpus);
  }
  const std::string node_text = std::to_string(nodes->size()) + " nodes";
  const std::string hint = "write --gpus-per-node=N instead of --gpus in the sbatch line";
  if (unknown_count == 0 ? known != total.count : known > total.count) {
    Contradict(total.text, std::to_string(known) + " GPUs on " + node_text, hint);
  }
  if (unknown_count == 1) {
    unknown->gpus = total.count - known;
  } else if (unknown_count > 1 && here != nullptr &&
             1LL * known * static_cast<int>(nodes->size()) != total.count) {
    return total.text + " is not spread evenly over " + node_text + " (" + here->host + " has " +
           std::to_string(known) + "), and how is not said: " + hint;
  }
  return "";
}

// Why the GPUs that belong to tasks need not be where `nodes` have their slots; "" where they are.
// Slurm 22.05 gives a job of --nodes=2 --ntasks=4 --gpus-per-task=1 one GPU on one node and three
// on the other where others use the rest, and SLURM_TASKS_PER_NODE=2(x2) all the same.
// In a partition of whole nodes this one has more than its tasks need.  `said` are the GPUs of this
// node's tasks, `granted` those that it has; empty where they are not known.
std::string MaySpreadOtherwise(const Environment& environment, const std::string& suffix,
                               std::size_t node_count, std::optional<int> said,
                               std::optional<int> granted) {
  Unreadable unreadable;
  const auto per_task = FindGpusPerTask(environment, suffix, &unreadable);
  if (!per_task || FindVariable(environment, "SLURM_GPUS_PER_NODE" + suffix)) return "";
  const bool is_as_reported = said && said == granted;
  const bool has_more = said && granted && *granted > *said;
  const bool is_logged =
      !has_more && (node_count < 2 || (node_count == 2 && is_as_reported) ||
                    FindVariable(environment, "SLURM_NTASKS_PER_NODE" + suffix).has_value());
  return is_logged ? "" : per_task->text + " does not say how many GPUs each node has";
}

}  // namespace

std::optional<int> GpusPerTask(const Environment& environment) {
  Unreadable unreadable;
  const auto found = FindGpusPerTask(environment, "", &unreadable);
  return found ? std::optional<int>(found->count) : std::nullopt;
}

std::string ReadGpus(const Environment& environment, const std::string& suffix,
                     std::vector<AllocatedNode>* nodes) {
  Unreadable unreadable;
  const std::optional<Found> everywhere = ReadEverywhere(environment, suffix, nodes, &unreadable);
  AllocatedNode* here = FindHere(environment, suffix, nodes);
  std::string spread;
  if (here == nullptr) {
    spread = MaySpreadOtherwise(environment, suffix, nodes->size(), std::nullopt, std::nullopt);
  } else {
    HereGrant grant = ReadHere(environment, &unreadable);
    const auto granted = grant.gpus ? std::optional<int>(grant.gpus->count) : std::nullopt;
    spread = MaySpreadOtherwise(environment, suffix, nodes->size(), here->gpus, granted);
    if (granted && here->gpus && granted != here->gpus && spread.empty()) {
      Contradict(grant.gpus->text + " on " + here->host,
                 everywhere->text + " (" + std::to_string(*here->gpus) + " GPUs there)",
                 "submit again with #SBATCH --gpus-per-node=" + std::to_string(*here->gpus));
    }
    if (grant.gpus) here->gpus = grant.gpus->count;
    here->gpu_indices = std::move(grant.indices);
  }
  const std::optional<Found> total = FindGpuCount(environment, "SLURM_GPUS" + suffix, &unreadable);
  const std::string unclear = total && spread.empty() ? ApplyTotal(*total, here, nodes) : spread;
  for (const AllocatedNode& node : *nodes) {
    if (node.gpus && *node.gpus > kMaxGpusPerNode) {
      throw LaunchError(EX_CONFIG, node.host + " would have " + std::to_string(*node.gpus) +
                                       " GPUs: at most " + std::to_string(kMaxGpusPerNode) +
                                       " are possible");
    }
  }
  const bool all_known = std::all_of(nodes->begin(), nodes->end(), [](const AllocatedNode& node) {
    return node.gpus.has_value();
  });
  if (!unclear.empty() || all_known) return unclear;
  if (!unreadable.empty()) {
    return unreadable + " is in no known form such as 4 or v100:4: give ddlrun --accelerators N";
  }
  if (here != nullptr) return "";
  return "no variable says how many GPUs " + nodes->front().host +
         " has: ask for --gpus-per-node=N instead of --gres, or give ddlrun --accelerators N";
}

}  // namespace launcher
