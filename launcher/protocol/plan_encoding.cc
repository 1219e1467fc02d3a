// SPDX-License-Identifier: Apache-2.0

#include "launcher/protocol/plan_encoding.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <map>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "rankfile/cpu_list.h"
#include "support/number.h"

namespace launcher {
namespace {

constexpr char kNoCpus[] = "-";

// No node has more CPUs; a text that says so was not written by ddlrun.
constexpr int kMaxCpus = rankfile::kMaxCpu + 1;
// The same for all ranks together.
constexpr std::size_t kMaxCpusOfPlan = 1U << 26;
// The most digits that a number in a host name may have to begin a run; more would not fit in an
// int.
constexpr std::size_t kMaxDigits = 9;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string EncodeCpus(const std::vector<int>& cpus) {
  return cpus.empty() ? kNoCpus : rankfile::FormatCpuList(cpus);
}

// Accepts only what EncodeCpus writes, while rankfile::ParseCpuList accepts what people write.
std::vector<int> DecodeCpus(const std::string& runs) {
  std::vector<int> cpus;
  if (runs == kNoCpus) return cpus;
  std::istringstream stream(runs);
  for (std::string run; std::getline(stream, run, ',');) {
    const std::size_t dash = std::min(run.find('-'), run.size());
    const int first = DecodeNumber(run.substr(0, dash));
    const int last = dash < run.size() ? DecodeNumber(run.substr(dash + 1)) : first;
    if (first < 0 || last < first || last >= kMaxCpus || cpus.size() > kMaxCpus) {
      throw std::out_of_range("CPU numbers");
    }
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

// Two nodes with the same words here are of one kind: they differ only in their names and in the
// numbers of their ranks.
std::string KindTokens(const LaunchPlan& plan, const NodePlacement& node) {
  std::string words = std::to_string(node.gpus) + ":" + std::to_string(node.ranks.size());
  for (const int r : node.ranks) {
    const RankPlacement& rank = plan.ranks[static_cast<std::size_t>(r)];
    words += " " + std::to_string(rank.gpu) + ":" + std::to_string(rank.numa_os_index) + ":" +
             std::to_string(rank.cores.size()) + ":" + EncodeCpus(rank.cpus);
  }
  return words;
}

// A run of hosts.  The name of each is the prefix, a number with as many digits as the first has,
// and the suffix.
struct HostRange {
  std::string prefix, first, suffix;

  std::string Name(int index) const {
    if (first.empty()) return prefix;
    std::string number = std::to_string(DecodeNumber(first) + index);
    if (number.size() < first.size()) number.insert(0, first.size() - number.size(), '0');
    return prefix + number + suffix;
  }
};

// The run that `host` may begin.  Its number is where the name first differs from `next`.
HostRange BeginRange(const std::string& host, const std::string& next) {
  const auto differs = std::mismatch(host.begin(), host.end(), next.begin(), next.end()).first;
  auto start = static_cast<std::size_t>(differs - host.begin());
  while (start > 0 && IsDigit(host[start - 1])) --start;
  std::size_t end = start;
  while (end < host.size() && IsDigit(host[end])) ++end;
  if (end == start || end - start > kMaxDigits) return {host, "", ""};
  return {host.substr(0, start), host.substr(start, end - start), host.substr(end)};
}

std::vector<std::string> HostRangeTokens(const std::vector<NodePlacement>& nodes,
                                         const std::vector<int>& kinds) {
  std::vector<std::string> words;
  for (std::size_t first = 0; first < nodes.size();) {
    const bool is_last = first + 1 == nodes.size();
    HostRange run = BeginRange(nodes[first].host, is_last ? "" : nodes[first + 1].host);
    std::size_t end = first + 1;
    while (!run.first.empty() && end < nodes.size() && kinds[end] == kinds[first] &&
           nodes[end].host == run.Name(static_cast<int>(end - first))) {
      ++end;
    }
    if (end == first + 1) run = {nodes[first].host, "", ""};
    words.push_back(std::to_string(end - first) + ":" + std::to_string(kinds[first]) + ":" +
                    EscapeToken(run.prefix) + ":" + EscapeToken(run.first) + ":" +
                    EscapeToken(run.suffix));
    first = end;
  }
  return words;
}

struct RankSpan {
  int node = 0, nodes = 1, ranks = 1;
};

std::vector<RankSpan> RankSpans(const std::vector<RankPlacement>& ranks) {
  std::vector<RankSpan> runs;
  for (std::size_t first = 0; first < ranks.size();) {
    std::size_t end = first;
    while (end < ranks.size() && ranks[end].node == ranks[first].node) ++end;
    const RankSpan next = {ranks[first].node, 1, static_cast<int>(end - first)};
    if (!runs.empty() && runs.back().ranks == next.ranks &&
        runs.back().node + runs.back().nodes == next.node) {
      ++runs.back().nodes;
    } else {
      runs.push_back(next);
    }
    first = end;
  }
  return runs;
}

struct NodeKind {
  int gpus = 0;
  std::vector<RankPlacement> ranks;
};

NodeKind DecodeKind(TokenReader& words) {
  const std::vector<std::string> head = words.Fields(2);
  NodeKind kind;
  kind.gpus = DecodeNumber(head[0]);
  const int ranks = DecodeNumber(head[1]);
  for (int local = 0; local < ranks; ++local) {
    const std::vector<std::string> fields = words.Fields(4);
    RankPlacement rank;
    rank.local_rank = local;
    rank.gpu = DecodeNumber(fields[0]);
    rank.numa_os_index = DecodeNumber(fields[1]);
    rank.cpus = DecodeCpus(fields[3]);
    const int cores = DecodeNumber(fields[2]);
    if (cores < 0 || static_cast<std::size_t>(cores) > rank.cpus.size()) {
      throw std::out_of_range("number of cores");
    }
    rank.cores.resize(static_cast<std::size_t>(cores));
    kind.ranks.push_back(std::move(rank));
  }
  return kind;
}

// Adds the nodes of one run to `plan`, which is to have `nodes` nodes in all, and the index of
// their kind to `kind_of`.
void DecodeHostRange(TokenReader& words, int nodes, const std::vector<NodeKind>& kinds,
                     LaunchPlan* plan, std::vector<int>* kind_of) {
  const std::vector<std::string> fields = words.Fields(5);
  const int count = DecodeNumber(fields[0]);
  const int kind = DecodeNumber(fields[1]);
  const HostRange run = {UnescapeToken(fields[2]), UnescapeToken(fields[3]),
                         UnescapeToken(fields[4])};
  const bool has_number = !run.first.empty();
  if (count < 1 || count > nodes - static_cast<int>(plan->nodes.size()) || kind < 0 ||
      kind >= static_cast<int>(kinds.size()) ||
      (!has_number && (count > 1 || !run.suffix.empty())) || run.first.size() > kMaxDigits ||
      !std::all_of(run.first.begin(), run.first.end(), IsDigit)) {
    throw std::out_of_range("hosts");
  }
  for (int i = 0; i < count; ++i) {
    NodePlacement& node = plan->nodes.emplace_back();
    node.host = run.Name(i);
    node.gpus = kinds[static_cast<std::size_t>(kind)].gpus;
    kind_of->push_back(kind);
  }
}

}  // namespace

std::string EncodePlan(const LaunchPlan& plan) {
  std::map<std::string, int> kinds;
  std::vector<int> kind_of;  // of each node
  std::string kind_words;
  for (const NodePlacement& node : plan.nodes) {
    const auto [kind, is_new] =
        kinds.emplace(KindTokens(plan, node), static_cast<int>(kinds.size()));
    if (is_new) kind_words += " " + kind->first;
    kind_of.push_back(kind->second);
  }
  const std::vector<std::string> host_ranges = HostRangeTokens(plan.nodes, kind_of);
  const std::vector<RankSpan> rank_spans = RankSpans(plan.ranks);
  std::ostringstream text;
  text << plan.cpus_per_rank.value_or(0) << ' ' << plan.nodes.size() << ' ' << plan.ranks.size()
       << ' ' << kinds.size() << ' ' << host_ranges.size() << ' ' << rank_spans.size()
       << kind_words;
  for (const std::string& run : host_ranges) text << ' ' << run;
  for (const RankSpan& run : rank_spans) {
    text << ' ' << run.node << ':' << run.nodes << ':' << run.ranks;
  }
  return text.str();
}

LaunchPlan DecodePlan(TokenReader& words) {
  LaunchPlan plan;
  const int cpus_per_rank = words.Number();
  if (cpus_per_rank > 0) plan.cpus_per_rank = cpus_per_rank;
  const int nodes = words.Number();
  const int ranks = words.Number();
  const int kind_count = words.Number();
  const int host_ranges = words.Number();
  const int rank_spans = words.Number();
  if (nodes > kMaxPlannedRanks || ranks > kMaxPlannedRanks) throw std::out_of_range("a number");
  std::vector<NodeKind> kinds;
  for (int i = 0; i < kind_count; ++i) kinds.push_back(DecodeKind(words));
  std::vector<int> kind_of;
  for (int i = 0; i < host_ranges; ++i) DecodeHostRange(words, nodes, kinds, &plan, &kind_of);
  if (static_cast<int>(plan.nodes.size()) != nodes) throw std::out_of_range("number of nodes");

  std::size_t cpus = 0;
  const auto add_rank = [&](int node_index) {
    NodePlacement& node = plan.nodes[static_cast<std::size_t>(node_index)];
    const int kind_index = kind_of[static_cast<std::size_t>(node_index)];
    const NodeKind& kind = kinds[static_cast<std::size_t>(kind_index)];
    if (node.ranks.size() == kind.ranks.size()) throw std::out_of_range("ranks of a node");
    RankPlacement& rank = plan.ranks.emplace_back(kind.ranks[node.ranks.size()]);
    rank.rank = static_cast<int>(plan.ranks.size()) - 1;
    rank.node = node_index;
    node.ranks.push_back(rank.rank);
    cpus += rank.cpus.size();
    if (cpus > kMaxCpusOfPlan) throw std::out_of_range("CPU numbers");
  };
  for (int i = 0; i < rank_spans; ++i) {
    const std::vector<std::string> fields = words.Fields(3);
    const RankSpan run = {DecodeNumber(fields[0]), DecodeNumber(fields[1]),
                          DecodeNumber(fields[2])};
    if (run.node < 0 || run.nodes < 1 || run.nodes > nodes - run.node || run.ranks < 1) {
      throw std::out_of_range("ranks");
    }
    for (int node = run.node; node < run.node + run.nodes; ++node) {
      for (int k = 0; k < run.ranks; ++k) add_rank(node);
    }
  }
  words.ExpectEnd();
  // No node has more ranks than its kind; if all together have as many as their kinds, each has.
  std::size_t wanted = 0;
  for (const int kind : kind_of) wanted += kinds[static_cast<std::size_t>(kind)].ranks.size();
  if (wanted != plan.ranks.size() || static_cast<int>(plan.ranks.size()) != ranks) {
    throw std::out_of_range("number of ranks");
  }
  return plan;
}

namespace {

constexpr std::string_view kPlain = "_./+,@";
constexpr char kNothing[] = "-";

}  // namespace

std::string EscapeToken(const std::string& text) {
  if (text.empty()) return kNothing;
  std::string word;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 128 && (std::isalnum(byte) != 0 || kPlain.find(c) != std::string_view::npos)) {
      word += c;
    } else {
      std::array<char, 4> escaped = {};
      std::snprintf(escaped.data(), escaped.size(), "%%%02X", byte);
      word += escaped.data();
    }
  }
  return word;
}

std::string UnescapeToken(std::string_view word) {
  if (word == kNothing) return "";
  std::string text;
  for (std::size_t i = 0; i < word.size(); ++i) {
    int byte = static_cast<unsigned char>(word[i]);
    if (word[i] == '%') {
      const std::string_view digits = word.substr(i + 1, 2);
      const auto number = support::WholeNumber<unsigned>(digits, 16);
      if (digits.size() != 2 || !number) throw std::out_of_range("a %");
      byte = static_cast<int>(*number);
      i += 2;
    }
    text += static_cast<char>(byte);
  }
  return text;
}

int DecodeNumber(std::string_view text) {
  const std::optional<int> number = support::WholeNumber<int>(text);
  if (!number || *number < -1) {
    throw std::out_of_range("'" + std::string(text.substr(0, 40)) + "' is not numeric");
  }
  return *number;
}

std::string TokenReader::Next() {
  std::string word;
  if (!std::getline(stream_, word, ' ')) throw std::out_of_range("it is too short");
  return word;
}

std::vector<std::string> TokenReader::Fields(std::size_t count) {
  std::vector<std::string> fields;
  std::istringstream word(Next());
  for (std::string field; std::getline(word, field, ':');) fields.push_back(field);
  if (fields.size() != count) throw std::out_of_range("another number of fields");
  return fields;
}

void TokenReader::ExpectEnd() {
  std::string word;
  if (std::getline(stream_, word, ' ')) throw std::out_of_range("it is too long");
}

}  // namespace launcher
