// SPDX-License-Identifier: Apache-2.0

#include "launcher/slurm/complete_allocation.h"

#include <algorithm>
#include <vector>

#include "launcher/base/error.h"
#include "launcher/slurm/job_detail.h"
#include "launcher/slurm/scontrol.h"
#include "launcher/slurm/slurm_gpus.h"

namespace launcher {
namespace {

[[noreturn]] void RejectEndedJob(const std::string& job_id, const std::string& state) {
  throw LaunchError(EX_CONFIG, "job " + job_id + " is over (" + state +
                                   "): leave this shell, or unset its SLURM_ variables: unset "
                                   "\"${!SLURM_@}\"");
}

// Moves the tasks of nodes that have no GPUs for them to nodes that have GPUs left, the first ones
// first.  Where the GPUs of all nodes are for fewer tasks, all stay where they are.
void PutTasksWhereGpusAre(int gpus_per_task, Allocation* allocation) {
  std::vector<int> slots;
  int waiting = 0;
  for (const AllocatedNode& node : allocation->nodes) {
    if (!node.slots) return;
    slots.push_back(std::min(*node.slots, *node.gpus / gpus_per_task));
    if (slots.back() < 1) return;
    waiting += *node.slots - slots.back();
  }
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const int more = std::min(waiting, *allocation->nodes[i].gpus / gpus_per_task - slots[i]);
    slots[i] += more;
    waiting -= more;
  }
  if (waiting > 0) return;
  for (std::size_t i = 0; i < slots.size(); ++i) allocation->nodes[i].slots = slots[i];
}

}  // namespace

void QuerySlurmForGpus(const Environment& environment, Allocation* allocation) {
  if (allocation->gpus_unclear.empty()) return;
  const ScontrolAnswer answer =
      RunScontrol({"show", "job", "--details", allocation->job_id}, environment);
  if (!answer.is_ok) {
    if (answer.text.find("Invalid job id") != std::string::npos) {
      RejectEndedJob(allocation->job_id, "Slurm no longer knows it");
    }
    throw LaunchError(EX_CONFIG,
                      allocation->gpus_unclear + "; asking scontrol show job: " + answer.text);
  }
  const std::string state = StateOfEndedJob(answer.text, allocation->job_id);
  if (!state.empty()) RejectEndedJob(allocation->job_id, state);
  ApplyJobDetail(ParseJobDetail(answer.text, allocation->job_id), allocation);
  const int gpus_per_task = GpusPerTask(environment).value_or(0);
  if (gpus_per_task > 0) PutTasksWhereGpusAre(gpus_per_task, allocation);
}

void LookForForgottenGpus(const Environment& environment, Allocation* allocation) {
  const bool requested_nothing =
      allocation->origin == Allocation::Origin::kSlurm && !allocation->nodes.empty() &&
      allocation->nodes.front().gpus == 0 &&
      std::all_of(allocation->nodes.begin(), allocation->nodes.end(),
                  [](const auto& node) { return node.gpus.value_or(0) == 0 && !node.slots; });
  if (!requested_nothing) return;
  // The list of thousands of nodes would be too long an argument; the first stands for the others.
  const ScontrolAnswer answer =
      RunScontrol({"show", "node", allocation->nodes.front().host}, environment);
  if (answer.is_ok) allocation->gpus_per_node_unasked = MaxGpusOfANode(answer.text);
}

void LookWhatACpuIs(int threads, int threads_per_core, const Environment& environment,
                    Allocation* allocation) {
  const bool may_be_core = allocation->origin == Allocation::Origin::kSlurm &&
                           allocation->cpus_per_rank && threads_per_core > 1;
  if (!may_be_core) return;
  const ScontrolAnswer answer =
      RunScontrol({"show", "node", allocation->nodes.front().host}, environment);
  allocation->cpus_are_cores =
      answer.is_ok && CpusOfANode(answer.text) == threads / threads_per_core;
}

std::string QuerySlurmForAddress(const std::string& host, const Environment& environment) {
  const ScontrolAnswer answer = RunScontrol({"show", "node", host}, environment);
  return answer.is_ok ? AddressOfANode(answer.text) : "";
}

}  // namespace launcher
