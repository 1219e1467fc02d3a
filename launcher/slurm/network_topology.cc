// SPDX-License-Identifier: Apache-2.0

#include "launcher/slurm/network_topology.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "launcher/system/files.h"
#include "rankfile/hostlist.h"
#include "rankfile/scanner.h"

namespace launcher {
namespace {

struct UnitKey {
  std::string_view key, unit;
};
constexpr UnitKey kUnitKeys[] = {{"SwitchName=", "switch"},
                                 {"BlockName=", "block"},
                                 {"AggregatedBlock=", "block"},
                                 {"RingName=", "ring"},
                                 {"TorusName=", "torus"}};

// A switch, block or ring.
struct NetworkUnit {
  std::string name;
  std::size_t size = 0;              // nodes of the cluster
  std::vector<std::size_t> members;  // nodes of the job, by their numbers
};

bool IsPrintable(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

std::vector<std::string> HostsOrNone(const std::string& list) {
  try {
    return rankfile::ExpandHostlist(list, "scontrol show topology");
  } catch (const rankfile::ParseError&) {
    return {};
  }
}

// The unit of one line, with `kind` as "switch"; nullopt for a line of another form.
std::optional<NetworkUnit> ParseUnit(const std::string& line,
                                     const std::unordered_map<std::string, std::size_t>& numbers,
                                     std::string* kind) {
  std::istringstream words(line);
  std::string word;
  if (!(words >> word)) return std::nullopt;
  const auto* key =
      std::find_if(std::begin(kUnitKeys), std::end(kUnitKeys),
                   [&](const UnitKey& candidate) { return word.starts_with(candidate.key); });
  if (key == std::end(kUnitKeys)) return std::nullopt;
  NetworkUnit unit;
  unit.name = word.substr(key->key.size());
  if (unit.name.empty() || !IsPrintable(unit.name)) return std::nullopt;
  constexpr std::string_view kNodes = "Nodes=";
  while (words >> word) {
    if (!word.starts_with(kNodes)) continue;
    for (const std::string& host : HostsOrNone(word.substr(kNodes.size()))) {
      ++unit.size;
      const auto found = numbers.find(host);
      if (found != numbers.end()) unit.members.push_back(found->second);
    }
  }
  if (unit.members.empty()) return std::nullopt;
  *kind = key->unit;
  return unit;
}

}  // namespace

void ReadNetworkTopology(const std::string& text, Allocation* allocation) {
  std::unordered_map<std::string, std::size_t> numbers;
  for (const AllocatedNode& node : allocation->nodes) numbers.emplace(node.host, numbers.size());
  std::vector<NetworkUnit> units;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::optional<NetworkUnit> unit = ParseUnit(line, numbers, &allocation->network_unit);
    if (unit) units.push_back(std::move(*unit));
  }
  std::stable_sort(units.begin(), units.end(),
                   [](const auto& a, const auto& b) { return a.size > b.size; });
  std::vector<std::vector<const NetworkUnit*>> units_of(allocation->nodes.size());
  for (const NetworkUnit& unit : units) {
    for (const std::size_t member : unit.members) units_of[member].push_back(&unit);
  }
  for (std::size_t number = 0; number < units_of.size(); ++number) {
    std::vector<std::string>& path = allocation->nodes[number].network_path;
    path.clear();
    for (const NetworkUnit* unit : units_of[number]) {
      const bool is_own = unit == units_of[number].back();
      const bool holds_all = unit->members.size() == allocation->nodes.size();
      if (is_own || !holds_all) path.push_back(unit->name);
    }
  }
}

std::string TopologyOfPartition(const std::string& text) {
  constexpr std::string_view kTopology = "Topology=";
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::string name = word.starts_with(kTopology) ? word.substr(kTopology.size()) : "";
    if (!name.empty() && name != "(null)") return name;
  }
  return "";
}

NetworkQuestion::NetworkQuestion(const Environment& environment, bool of_partition)
    : environment_(environment) {
  environment_.erase("SLURM_TOPO_LEN");  // would cut the lines short
  const std::string scontrol = FindProgram("scontrol", environment_);
  if (scontrol.empty()) return;
  const auto show = [&](const std::vector<std::string>& what) {
    std::vector<std::string> words = {scontrol, "show"};
    words.insert(words.end(), what.begin(), what.end());
    return std::make_unique<CommandOutput>(words, environment_);
  };
  topology_ = show({"topology"});
  const std::string partition = ValueOr(environment_, "SLURM_JOB_PARTITION", "");
  if (of_partition && !partition.empty()) partition_ = show({"partition", partition});
}

ScontrolAnswer NetworkQuestion::Wait() {
  if (partition_ != nullptr && partition_->Wait(kTimeoutWithScontrol)) {
    const std::string own = TopologyOfPartition(partition_->text());
    if (!own.empty()) return RunScontrol({"show", "topology", own}, environment_);
  }
  return AnswerOfScontrol(topology_.get());
}

bool HasFlatTopology(const Environment& environment) {
  return ValueOr(environment, "SLURM_TOPOLOGY_ADDR_PATTERN", "") == "node";
}

}  // namespace launcher
