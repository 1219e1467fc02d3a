// SPDX-License-Identifier: Apache-2.0

#include "launcher/tune/slow_links.h"

#include <algorithm>
#include <optional>
#include <set>

namespace launcher {
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

}  // namespace launcher
