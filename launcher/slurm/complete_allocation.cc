// SPDX-License-Identifier: Apache-2.0

#include "launcher/slurm/complete_allocation.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <sstream>

#include "launcher/base/error.h"
#include "launcher/slurm/slurm_allocation.h"
#include "launcher/slurm/slurm_job.h"
#include "launcher/slurm/slurm_variables.h"
#include "rankfile/hostlist.h"
#include "rankfile/scanner.h"

namespace launcher {
namespace {

constexpr char kWhere[] = "scontrol show job --details";

// The word of `line` that begins with `name`, without it; "" where there is none.
std::string WordAfter(const std::string& line, const std::string& name) {
  std::istringstream words(line);
  std::string word;
  while (words >> word) {
    if (word.starts_with(name)) return word.substr(name.size());
  }
  return "";
}

// Where the entry that begins at `start` ends: the next comma outside parentheses.
std::size_t FindEntryEnd(const std::string& text, std::size_t start) {
  int depth = 0;
  for (std::size_t i = start; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')') --depth;
    if (text[i] == ',' && depth <= 0) return i;
  }
  return text.size();
}

// "gpu:v100:4(IDX:0-3),gpu:a100:1(IDX:4),tmpdisk:50"; nullopt for a count that cannot be read.
std::optional<NodeGrant> ParseGres(const std::string& gres) {
  NodeGrant grant;
  for (std::size_t start = 0; start < gres.size();) {
    const std::size_t end = FindEntryEnd(gres, start);
    const std::string entry = gres.substr(start, end - start);
    start = end + 1;
    if (!entry.starts_with("gpu:") && !entry.starts_with("gpu(")) continue;
    const std::size_t open = std::min(entry.find('('), entry.size());
    const std::string count = entry.substr(0, open);
    const std::optional<int> gpus = count == "gpu" ? 1 : TryParseGpuCount(count);
    if (!gpus) return std::nullopt;
    grant.gpus = std::min(grant.gpus + std::min(*gpus, kMaxGpusPerNode), kMaxGpusPerNode);
    const std::size_t index = entry.find("IDX:", open);
    if (index == std::string::npos) continue;
    const std::size_t close = std::min(entry.find(')', index), entry.size());
    const std::string list = entry.substr(index + 4, close - index - 4);
    if (list.empty() || list == "N/A") continue;
    for (const int i : ParseIndices(list)) grant.gpu_indices.push_back(i);
  }
  std::sort(grant.gpu_indices.begin(), grant.gpu_indices.end());
  if (static_cast<int>(grant.gpu_indices.size()) != grant.gpus) grant.gpu_indices.clear();
  return grant;
}

}  // namespace

std::map<std::string, NodeGrant> ParseJobDetail(const std::string& text,
                                                const std::string& number) {
  std::map<std::string, NodeGrant> grants;
  std::istringstream lines(text);
  bool is_own = false;
  for (std::string line; std::getline(lines, line);) {
    // "JobId=14 ArrayJobId=12 ..." or "JobId=13 HetJobId=12 ..." begins what is said of a job.
    if (line.starts_with("JobId=")) {
      is_own = WordAfter(line, "JobId=") == number || WordAfter(line, "HetJobId=") == number;
    }
    if (!is_own) continue;
    const std::string nodes = WordAfter(line, "Nodes=");
    if (nodes.empty() || line.find(" CPU_IDs=") == std::string::npos) continue;
    const std::string gres = WordAfter(line, "GRES=");
    const std::optional<NodeGrant> grant = ParseGres(gres);
    if (!grant) {
      throw LaunchError(EX_CONFIG, std::string(kWhere) + " says " + Show("GRES", gres) + " of " +
                                       nodes.substr(0, 120) +
                                       ", whose number of GPUs cannot be read: give ddlrun "
                                       "--accelerators N");
    }
    try {
      for (const std::string& host : rankfile::ExpandHostlist(nodes, kWhere)) grants[host] = *grant;
    } catch (const rankfile::ParseError& error) {
      throw LaunchError(EX_CONFIG, error.what());
    }
    if (grants.size() > rankfile::kMaxHosts) throw LaunchError(EX_CONFIG, "too many hosts");
  }
  return grants;
}

std::string StateOfEndedJob(const std::string& text, const std::string& number) {
  static constexpr const char* kOver[] = {"BOOT_FAIL", "CANCELLED", "COMPLETED",     "DEADLINE",
                                          "FAILED",    "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED",
                                          "REVOKED",   "TIMEOUT"};
  std::istringstream lines(text);
  bool is_own = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("JobId=")) is_own = WordAfter(line, "JobId=") == number;
    if (!is_own) continue;
    const std::string state = WordAfter(line, "JobState=");
    if (state.empty()) continue;
    return std::find(std::begin(kOver), std::end(kOver), state) == std::end(kOver) ? "" : state;
  }
  return "";
}

void ApplyJobDetail(const std::map<std::string, NodeGrant>& grants, Allocation* allocation) {
  for (AllocatedNode& node : allocation->nodes) {
    const auto found = grants.find(node.host);
    if (found == grants.end()) {
      throw LaunchError(EX_CONFIG, std::string(kWhere) + " does not name " + node.host + " (" +
                                       allocation->origin_text + ")");
    }
    node.gpus = found->second.gpus;
    node.gpu_indices = found->second.gpu_indices;
  }
  allocation->gpus_unclear.clear();
}

int CpusOfANode(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::optional<int> cpus = TryParseCount(WordAfter(line, "CPUTot="));
    if (cpus) return *cpus;
  }
  return 0;
}

std::string AddressOfANode(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::string address = WordAfter(line, "NodeAddr=");
    if (!address.empty()) return address;
  }
  return "";
}

int MaxGpusOfANode(const std::string& text) {
  int max = 0;
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) {
    max = std::max(max, ParseGres(WordAfter(line, "Gres=")).value_or(NodeGrant{}).gpus);
  }
  return max;
}

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
