// SPDX-License-Identifier: Apache-2.0

#include "launcher/tune/measurements.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
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

}  // namespace launcher
