// SPDX-License-Identifier: Apache-2.0

#include "launcher/tune/measurements.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "support/number.h"

namespace launcher {
namespace {

// The columns of nccl-tests: size count type redop root, then time, algbw, busbw and #wrong of sums
// out of place, which ddlbench has none of, then those of sums in place.
constexpr std::size_t kColumns = 13;
constexpr std::size_t kTime = 9;
constexpr std::size_t kWrong = 12;

}  // namespace

std::vector<SizeTime> ParseAllReduce(const std::string& text) {
  std::vector<SizeTime> times;
  bool is_whole = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    is_whole = is_whole || line.starts_with("# Avg bus bandwidth");
    std::istringstream stream(line);
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    if (words.size() != kColumns || words[3] != "sum") continue;
    const auto bytes = support::WholeNumber<long long>(words[0]);
    const auto time = support::WholeNumber<double>(words[kTime]);
    if (!bytes || !time || *time <= 0) continue;
    if (words[kWrong] != "0") return {};
    times.push_back({*bytes, *time});
  }
  return is_whole ? times : std::vector<SizeTime>();
}

bool IsOfNccl(const std::string& text) {
  return text.find("# ddlbench allreduce: NCCL") != std::string::npos;
}

double ScoreOf(const std::vector<SizeTime>& times) {
  double sum = 0;
  for (const SizeTime& time : times) sum += std::log(time.microseconds);
  return std::exp(sum / static_cast<double>(times.size()));
}

Summary Summarize(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t count = values.size();
  const std::size_t left_out = count >= 5 ? 1 : 0;
  const double median =
      count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
  return {median, values[count - 1 - left_out] - values[left_out]};
}

bool IsBetter(const Summary& candidate, const Summary& reference) {
  const double gain = reference.median - candidate.median;
  return gain > std::max(candidate.spread, reference.spread) && gain > kMinGain * reference.median;
}

std::string MicrosecondsText(double microseconds) {
  std::array<char, 64> text = {};
  const bool is_small = microseconds < 1e3;
  const bool is_large = microseconds >= 1e6;
  const double number = microseconds / (is_small ? 1 : is_large ? 1e6 : 1e3);
  std::snprintf(text.data(), text.size(), "%.*f %s",
                number < 10    ? 2
                : number < 100 ? 1
                               : 0,
                number,
                is_small   ? "us"
                : is_large ? "s"
                           : "ms");
  return text.data();
}

std::string SummaryText(const Summary& summary) {
  return MicrosecondsText(summary.median) + " (scatter " + MicrosecondsText(summary.spread) + ")";
}

namespace {

bool Has(const PairTime& pair, int node) { return pair.one == node || pair.other == node; }

}  // namespace

std::vector<std::pair<int, int>> PairsToMeasure(int nodes) {
  std::vector<std::pair<int, int>> pairs;
  if (nodes <= kMaxNodesOfEveryPair) {
    for (int one = 0; one < nodes; ++one) {
      for (int other = one + 1; other < nodes; ++other) pairs.emplace_back(one, other);
    }
    return pairs;
  }
  for (int one = 0; one < nodes; ++one) pairs.emplace_back(one, (one + 1) % nodes);
  return pairs;
}

std::vector<std::string> SlowLinkReporter(const std::string& way,
                                          const std::vector<std::string>& hosts,
                                          const std::vector<PairTime>& pairs) {
  std::optional<Summary> fastest;
  for (const PairTime& pair : pairs) {
    if (pair.microseconds.empty()) continue;
    const Summary summary = Summarize(pair.microseconds);
    if (!fastest || summary.median < fastest->median) fastest = summary;
  }
  if (!fastest) return {};
  const auto is_slow = [&](const PairTime& pair) {
    if (pair.microseconds.empty()) return true;
    const Summary summary = Summarize(pair.microseconds);
    return summary.median > kSlowPair * fastest->median && IsBetter(*fastest, summary);
  };
  const auto text = [](const PairTime& pair) {
    return pair.microseconds.empty() ? "failed" : SummaryText(Summarize(pair.microseconds));
  };
  const std::string than = ", the fastest pair " + SummaryText(*fastest);
  std::vector<std::string> lines;
  std::set<int> slow_nodes;
  for (int node = 0; node < static_cast<int>(hosts.size()); ++node) {
    std::string listed;
    bool is_all = true;
    for (const PairTime& pair : pairs) {
      if (!Has(pair, node)) continue;
      is_all = is_all && is_slow(pair);
      const int other = pair.one == node ? pair.other : pair.one;
      listed += (listed.empty() ? "" : ", ") + ("with " + hosts[static_cast<std::size_t>(other)]) +
                " " + text(pair);
    }
    if (!is_all || listed.empty()) continue;
    slow_nodes.insert(node);
    lines.push_back(hosts[static_cast<std::size_t>(node)] + " is slow on " + way + ": " + listed +
                    than);
  }
  for (const PairTime& pair : pairs) {
    if (!is_slow(pair) || slow_nodes.contains(pair.one) || slow_nodes.contains(pair.other))
      continue;
    lines.push_back(hosts[static_cast<std::size_t>(pair.one)] + " and " +
                    hosts[static_cast<std::size_t>(pair.other)] + " are slow on " + way + ": " +
                    text(pair) + than);
  }
  return lines;
}

namespace {

// One rank over all runs.  Times are of 1 MB there and back, in microseconds.
struct RankCopies {
  const CopyRow* row = nullptr;              // for who and where it is
  std::map<int, std::vector<double>> times;  // by CopyRow::from
};

double Rate(const Summary& time) { return 2e3 / time.median; }

std::string RateText(double rate) {
  char text[32];
  std::snprintf(text, sizeof text, rate < 10 ? "%.2f GB/s" : "%.1f GB/s", rate);
  return text;
}

std::string Who(const CopyRow& row) {
  return "rank " + std::to_string(row.rank) + " on " + row.host +
         (row.device == "-" ? "" : " (" + row.device + ")");
}

// What tells hwloc where the devices behind these host bridges are. A bridge that hosts have at
// different nodes is left out: the variable is the same for all.
std::string HwlocAdvice(const std::map<std::string, std::set<int>>& nodes_of_bridge) {
  std::string places;
  for (const auto& [bridge, nodes] : nodes_of_bridge) {
    if (nodes.size() != 1 || bridge == "-") continue;
    places += (places.empty() ? "" : ";") + bridge +
              " $(hwloc-calc -p numa:" + std::to_string(*nodes.begin()) + ")";
  }
  if (places.empty()) {
    return "if hwloc does not know better, HWLOC_PCI_LOCALITY tells it, on each host (its manual)";
  }
  return "if hwloc does not know better, tell it: export HWLOC_PCI_LOCALITY=\"" + places + "\"";
}

// The NUMA node from where copies are faster than from where the rank is bound, by kFarAway and by
// more than the scatter; kBound for none.
int NearerNode(const RankCopies& copies, const Summary& bound) {
  int nearest = kBound;
  double min = bound.median / kFarAway;
  for (const auto& [node, times] : copies.times) {
    const Summary there = Summarize(times);
    if (node < 0 || there.median > min || !IsBetter(there, bound)) continue;
    nearest = node;
    min = there.median;
  }
  return nearest;
}

void Name(std::vector<std::string> found, const char* others, std::vector<std::string>& lines) {
  const auto count = static_cast<int>(found.size());
  found.resize(static_cast<std::size_t>(std::min(count, kNamedRanks)));
  lines.insert(lines.end(), found.begin(), found.end());
  if (count > kNamedRanks) {
    lines.push_back("so " + std::string(count == kNamedRanks + 1 ? "is " : "are ") +
                    support::Counted(count - kNamedRanks, "more rank") + ": " + others);
  }
}

}  // namespace

std::vector<CopyRow> ParseCopies(const std::string& text) {
  std::vector<CopyRow> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    CopyRow row;
    std::string from;
    std::string rest;
    double to_device = 0;
    double to_host = 0;
    if (!(words >> row.rank >> row.host >> row.device >> row.bridge >> from >> to_device >>
          to_host))
      continue;
    const std::optional<int> node = support::WholeNumber<int>(from);
    if (!node && from != "all" && from != "bound") continue;
    if (words >> rest || to_device <= 0 || to_host <= 0) continue;
    row.from = node.value_or(from == "all" ? kAll : kBound);
    row.rate = 2 / (1 / to_device + 1 / to_host);
    rows.push_back(row);
  }
  return rows;
}

std::vector<std::string> CopyRemarks(const std::vector<std::vector<CopyRow>>& runs) {
  std::map<int, RankCopies> ranks;
  for (const std::vector<CopyRow>& run : runs) {
    for (const CopyRow& row : run) {
      RankCopies& copies = ranks[row.rank];
      copies.row = &row;
      copies.times[row.from].push_back(2e3 / row.rate);
    }
  }
  std::erase_if(ranks, [](const auto& item) { return !item.second.times.contains(kAll); });
  if (ranks.empty()) return {};

  std::vector<double> rates;
  const CopyRow* slowest = nullptr;
  double min = 0;
  for (const auto& [rank, copies] : ranks) {
    rates.push_back(Rate(Summarize(copies.times.at(kAll))));
    if (slowest != nullptr && rates.back() >= min) continue;
    slowest = copies.row;
    min = rates.back();
  }
  const double median = Summarize(rates).median;
  std::vector<std::string> lines = {std::string(slowest->device == "-"
                                                    ? "copies in the memory of the hosts"
                                                    : "copies to devices and back") +
                                    ", all ranks at once: " + RateText(median) +
                                    " in the median, " + RateText(min) + " of " + Who(*slowest)};

  std::vector<std::string> far;
  std::vector<std::string> slow;
  std::map<std::string, std::set<int>> nodes_of_bridge;
  for (const auto& [rank, copies] : ranks) {
    const auto alone = copies.times.find(kBound);
    const bool has_device = copies.row->device != "-" && alone != copies.times.end();
    const Summary bound = has_device ? Summarize(alone->second) : Summary();
    const int nearer = has_device ? NearerNode(copies, bound) : kBound;
    const Summary now = Summarize(copies.times.at(kAll));
    if (nearer >= 0) {
      nodes_of_bridge[copies.row->bridge].insert(nearer);
      far.push_back(Who(*copies.row) + " is bound far from its device: " + RateText(Rate(bound)) +
                    ", from NUMA node " + std::to_string(nearer) + " " +
                    RateText(Rate(Summarize(copies.times.at(nearer)))));
    } else if (Rate(now) < kSlowCopies * median) {
      slow.push_back(Who(*copies.row) + " copies at " + RateText(Rate(now)) + ", the median has " +
                     RateText(median) + ": is its link narrower, or its memory slower?");
    }
  }
  Name(far, "bound far from their devices", lines);
  if (!far.empty()) lines.push_back(HwlocAdvice(nodes_of_bridge));
  Name(slow, "slow copies", lines);
  return lines;
}

}  // namespace launcher
