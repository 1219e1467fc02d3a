// SPDX-License-Identifier: Apache-2.0
#include "launcher/slurm/job_detail.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <sstream>

#include "launcher/base/error.h"
#include "launcher/slurm/slurm_variables.h"
#include "rankfile/hostlist.h"
#include "rankfile/parse_error.h"

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

}  // namespace launcher
