// SPDX-License-Identifier: Apache-2.0
#include "launcher/slurm/slurm_gpus.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "launcher/base/error.h"

namespace launcher {
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
