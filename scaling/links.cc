// SPDX-License-Identifier: Apache-2.0

#include "scaling/links.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <sstream>

#include "support/number.h"

namespace scaling {
namespace {

enum Protocol : std::size_t { kLl, kLl128, kSimple };
constexpr std::size_t kProtocols = 3;

// Microseconds, by protocol.
struct Delays {
  double base[kProtocols];
  double nvlink[kProtocols];
  double pcie[kProtocols];
  double network[kProtocols];
};
constexpr Delays kTree = {{6.8, 14.0, 8.4}, {0.6, 1.25, 4.0}, {1.0, 1.9, 4.0}, {5.0, 8.5, 14.0}};
constexpr Delays kRing = {{6.6, 14.0, 8.4}, {0.6, 1.9, 3.4}, {1.0, 2.5, 5.7}, {2.7, 4.0, 14.0}};

// The greatest rate of LL, in GB/s, on one, two and more nodes.
constexpr double kGreatestLl[3][3] = {{39.0, 39.0, 20.4}, {87.7, 22.5, 19.0}, {141.0, 45.0, 35.0}};

double GreatestLl(Generation generation, int nodes) {
  return 1e9 * kGreatestLl[static_cast<std::size_t>(generation)][std::min(nodes, 3) - 1];
}

double RingRate(const Links& links, int nodes, double slowest, std::size_t protocol) {
  if (protocol == kLl) return std::min(slowest / 2, GreatestLl(links.generation, nodes));
  return protocol == kLl128 ? 0.92 * slowest : slowest;
}

double TreeRate(const Links& links, int nodes, double slowest, std::size_t protocol) {
  const double rate = 0.92 * slowest;
  if (protocol == kLl) return std::min(rate / 3.8, GreatestLl(links.generation, nodes));
  return protocol == kLl128 ? rate * (nodes == 1 ? 7.0 / 9 : 120.0 / 128) : rate;
}

double MeasuredRate(const std::vector<BusRate>& rates, double bytes) {
  const auto above = std::find_if(rates.begin(), rates.end(),
                                  [&](const BusRate& entry) { return entry.bytes >= bytes; });
  if (above == rates.end()) return rates.back().rate;
  // What is smaller than all that was measured takes as long as the smallest.
  if (above == rates.begin()) return above->rate * bytes / above->bytes;
  const BusRate& below = *(above - 1);
  const double share = std::log(bytes / below.bytes) / std::log(above->bytes / below.bytes);
  return below.rate * std::pow(above->rate / below.rate, share);
}

}  // namespace

const std::vector<Inside>& InsideNames() {
  static const std::vector<Inside> names = {
      {"xbus", 32e9, false, Generation::kVolta},
      {"nvlink2", 120e9, false, Generation::kVolta},
      {"nvlink3", 230e9, false, Generation::kAmpere},
      {"nvlink4", 360e9, false, Generation::kHopper},
      {"pcie3", 12e9, true, Generation::kVolta},
      {"pcie4", 24e9, true, Generation::kAmpere},
  };
  return names;
}

std::optional<Inside> InsideOfName(std::string_view name) {
  for (const Inside& inside : InsideNames()) {
    if (inside.name == name) return inside;
  }
  return std::nullopt;
}

int NodesOf(const Links& links, int ranks) {
  if (links.nodes > 0) return links.nodes;
  return (ranks + links.gpus_per_node - 1) / links.gpus_per_node;
}

Links JoinedLinks(const Links& a, int a_ranks, const Links& b, int b_nodes) {
  Links both = a;
  both.nodes = NodesOf(a, a_ranks) + b_nodes;
  both.gpus_per_node = std::max(a.gpus_per_node, b.gpus_per_node);
  // A node of one GPU has no links inside.
  const bool is_of_b = a.gpus_per_node == 1 || (b.gpus_per_node > 1 && b.inside < a.inside);
  if (is_of_b) {
    both.inside = b.inside;
    both.inside_is_pcie = b.inside_is_pcie;
  }
  both.between = std::min(a.between, b.between);
  both.more_delay = std::max(a.more_delay, b.more_delay);
  both.generation = std::min(a.generation, b.generation);
  return both;
}

double AdapterRate(double gbits) { return gbits / 100 * 12e9; }

double AllReduceSeconds(const Links& links, int ranks, double bytes) {
  if (ranks <= 1 || bytes <= 0) return 0;
  const int nodes = NodesOf(links, ranks);
  const double on_wire = 2.0 * (ranks - 1) / ranks * bytes;
  if (nodes > 1 && !links.measured.empty()) {
    return on_wire / MeasuredRate(links.measured, bytes);
  }
  const bool has_neighbours = links.gpus_per_node > 1;
  const double slowest = nodes == 1       ? links.inside
                         : has_neighbours ? std::min(links.inside, links.between)
                                          : links.between;
  const int hops = 2 * (ranks - 1);
  const int hops_between = nodes == 1 ? 0 : std::min(2 * nodes, hops);
  const int depth = nodes == 1 ? 0 : std::bit_width(static_cast<unsigned>(nodes - 1));
  const int chain = std::min(ranks, links.gpus_per_node) - 1;
  double fastest = INFINITY;
  for (std::size_t protocol = 0; protocol < kProtocols; ++protocol) {
    const auto seconds = [&](const Delays& delays, int inside, int between, double moved,
                             double rate) {
      const double hop = (links.inside_is_pcie ? delays.pcie : delays.nvlink)[protocol];
      const double network = delays.network[protocol] * 1e-6 + links.more_delay;
      return (delays.base[protocol] + inside * hop) * 1e-6 + between * network + moved / rate;
    };
    fastest = std::min({fastest,
                        seconds(kRing, hops - hops_between, hops_between, on_wire,
                                RingRate(links, nodes, slowest, protocol)),
                        seconds(kTree, 2 * chain, 2 * depth, 2 * bytes,
                                TreeRate(links, nodes, slowest, protocol))});
  }
  return fastest;
}

namespace {

constexpr std::size_t kRateColumn = 7;

std::vector<std::string> WordsOf(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

}  // namespace

BusRateTable ParseBusRates(std::string_view text) {
  BusRateTable table;
  std::istringstream stream{std::string(text)};
  int number = 0;
  double last = -1;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    const std::vector<std::string> words = WordsOf(line);
    if (words.empty() || words.front().front() == '#') continue;
    const std::optional<double> bytes = support::WholeNumber<double>(words.front());
    const std::optional<double> rate = words.size() > kRateColumn
                                           ? support::WholeNumber<double>(words[kRateColumn])
                                           : std::nullopt;
    const bool is_row = bytes && rate && *bytes >= 0 && *rate >= 0 && *bytes < 1e15 && *rate < 1e6;
    if (!is_row) {
      table.problem = std::to_string(number) +
                      ": no line of all_reduce_perf: size, count, type, redop, root, time, algbw, "
                      "busbw, ...";
      return table;
    }
    if (*bytes <= last) {
      table.problem = std::to_string(number) + ": sizes do not grow";
      return table;
    }
    last = *bytes;
    if (*bytes > 0 && *rate > 0) table.rates.push_back({*bytes, *rate * 1e9});
  }
  if (table.rates.empty())
    table.problem = std::to_string(number) + ": no line with a bus bandwidth";
  return table;
}

}  // namespace scaling
