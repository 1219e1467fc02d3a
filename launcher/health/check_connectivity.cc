// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "launcher/health/check_rules.h"
#include "launcher/health/pair_schedule.h"

namespace launcher {
namespace {

std::string ProblemText(const Nodes& nodes) {
  return GroupsText(GroupHosts(nodes, [](const NodeInfo& info) { return info.exchange.problem; }));
}

// Why something is not known although nothing has failed.
std::string UnavailableText(const Nodes& nodes) {
  const std::string text =
      GroupsText(GroupHosts(nodes, [](const NodeInfo& info) { return info.exchange.unavailable; }));
  return text.empty() ? "the nodes did not get as far as meeting" : text;
}

using Pair = std::pair<int, int>;

// In how many of the pairs each node is.
std::map<int, int> CountPairs(const std::vector<Pair>& pairs) {
  std::map<int, int> counts;
  for (const auto& [a, b] : pairs) {
    ++counts[a];
    ++counts[b];
  }
  return counts;
}

void EraseNode(int node, std::vector<Pair>* pairs) {
  std::erase_if(*pairs, [node](const Pair& p) { return p.first == node || p.second == node; });
}

// Chooses nodes until each of the pairs has one of them: always the node that is in most of the
// pairs that are left.  Of two nodes with as many pairs it is the later one, since ddlrun is on the
// first.  The counts are kept from one choice to the next, since all of thousands of nodes may have
// to be chosen: they take time as the pairs do, times the logarithm of the nodes.
std::vector<std::string> NodesOfAll(const std::vector<Pair>& pairs,
                                    const std::vector<std::string>& hosts) {
  std::vector<std::vector<int>> partners(hosts.size());  // of each node
  const auto partners_of = [&partners](int node) -> std::vector<int>& {
    return partners[static_cast<std::size_t>(node)];
  };
  for (const auto& [a, b] : pairs) {
    partners_of(a).push_back(b);
    partners_of(b).push_back(a);
  }
  std::map<int, int> counts = CountPairs(pairs);  // of the nodes that are not chosen
  std::set<std::pair<int, int>> by_count;         // count, node
  for (const auto& [node, count] : counts) by_count.emplace(count, node);
  std::vector<std::string> nodes;
  while (!by_count.empty() && by_count.rbegin()->first > 0) {
    const int worst = by_count.rbegin()->second;
    by_count.erase(std::prev(by_count.end()));
    counts.erase(worst);
    nodes.push_back(hosts[static_cast<std::size_t>(worst)]);
    for (const int partner : partners_of(worst)) {
      const auto count = counts.find(partner);
      if (count == counts.end()) continue;
      by_count.erase({count->second, partner});
      by_count.emplace(--count->second, partner);
    }
  }
  return nodes;
}

// How many nodes are named; the pairs of others are only counted, since the table is for people.
constexpr int kMaxNamed = 8;

// The pairs in few words: "n3 with n[1-2,4], n1 with n2".
std::string PairsText(std::vector<Pair> pairs, const std::vector<std::string>& hosts) {
  const auto name = [&hosts](int node) { return hosts[static_cast<std::size_t>(node)]; };
  std::string text;
  for (int named = 0; !pairs.empty(); ++named) {
    if (named == kMaxNamed) return text + " and " + CountText(pairs.size(), "pair") + " more";
    const std::map<int, int> counts = CountPairs(pairs);
    const auto worst = std::max_element(counts.begin(), counts.end(),
                                        [](auto& a, auto& b) { return a.second < b.second; });
    std::vector<std::string> others;
    for (const auto& [a, b] : pairs) {
      if (a == worst->first) others.push_back(name(b));
      if (b == worst->first) others.push_back(name(a));
    }
    text += (text.empty() ? "" : ", ") + name(worst->first) + " with " + HostsText(others);
    EraseNode(worst->first, &pairs);
  }
  return text;
}

struct Links {
  std::set<Pair> failed;  // lower index first; both ends may name a pair
  std::string problem;    // of the first that failed
  int ok = 0;
  Pair slowest = {-1, -1};
  double slowest_seconds = 0;
};

// Indices that no node has are ignored, since the text of another program may have them.
Links CollectLinks(const Nodes& nodes, int count) {
  Links links;
  for (const AnsweredNode& node : nodes) {
    const ConnectivityResult& exchange = node.info->exchange;
    for (const LinkTestResult& link : exchange.failed) {
      if (link.to < 0 || link.to >= count || node.info->node < 0 || node.info->node >= count) {
        continue;
      }
      links.failed.insert(std::minmax(node.info->node, link.to));
      if (links.problem.empty()) links.problem = link.problem;
    }
    links.ok += exchange.links_ok;
    if (exchange.slowest.to >= 0 && exchange.slowest.to < count && node.info->node < count &&
        exchange.slowest.seconds > links.slowest_seconds) {
      links.slowest = {node.info->node, exchange.slowest.to};
      links.slowest_seconds = exchange.slowest.seconds;
    }
  }
  return links;
}

std::string VersionsText(const NodeInfo& info) {
  std::string text = info.mpi.empty() ? "no MPI library" : info.mpi;
  if (!info.pmix.empty()) text += ", PMIx " + info.pmix;
  if (!info.pmix_server.empty()) text += ", the launcher's PMIx " + info.pmix_server;
  if (!info.ucx.empty()) text += ", UCX " + info.ucx;
  return text;
}

// The hosts that are not like the majority; none where there is no majority.
std::vector<std::string> OddOnes(HostsByText groups, std::size_t nodes) {
  const auto max = std::max_element(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
    return a.second.size() < b.second.size();
  });
  if (2 * max->second.size() <= nodes) return {};
  groups.erase(max);
  return HostsOf(groups);
}

}  // namespace

Verdict CheckClocks(const Nodes& nodes, const CheckedJob& job) {
  const std::string check = "clocks";
  if (nodes.size() == 1) return {check, Status::kOk, "one node", ""};
  std::vector<double> clocks;
  for (const AnsweredNode& node : nodes) {
    if (node.info->exchange.clock_seconds > 0) clocks.push_back(node.info->exchange.clock_seconds);
  }
  if (clocks.size() < nodes.size()) {
    const std::string problem = ProblemText(nodes);
    return {check, Status::kNotKnown, problem.empty() ? UnavailableText(nodes) : problem,
            "chronyc tracking on the nodes"};
  }
  std::sort(clocks.begin(), clocks.end());
  const double middle = clocks[clocks.size() / 2];
  const HostsByText off = GroupHosts(nodes, [&job, middle](const NodeInfo& info) -> std::string {
    const double offset = info.exchange.clock_seconds - middle;
    if (std::abs(offset) <= job.limits.clock_seconds) return "";
    return SecondsText(std::abs(offset)) + (offset > 0 ? " ahead" : " behind");
  });
  if (!off.empty()) {
    return {check, Status::kWarn, GroupsText(off),
            "logs cannot be put in order and file times mislead: chronyc tracking on the node"};
  }
  return {check, Status::kOk, "in step within " + SecondsText(clocks.back() - clocks.front()), ""};
}

Verdict CheckVersions(const Nodes& nodes, const CheckedJob& job) {
  const HostsByText groups = GroupHosts(nodes, VersionsText);
  if (groups.size() > 1) {
    return {"versions", Status::kFail, GroupsText(groups),
            "load the same modules on every node; ranks of different versions cannot meet",
            OddOnes(groups, nodes.size())};
  }
  if (!job.pmix_fault.empty()) {
    return {"versions", Status::kWarn, job.pmix_fault,
            "--launcher=mpirun does without Slurm's PMIx; --pmi=none, if the program needs no MPI"};
  }
  const bool has_mpi = !nodes.front().info->mpi.empty();
  return {"versions", has_mpi ? Status::kOk : Status::kNotKnown, groups.begin()->first,
          has_mpi ? "" : "module load openmpi, if the program needs MPI"};
}

Verdict CheckConnections(const Nodes& nodes, const CheckedJob& job) {
  const std::string check = "connections";
  std::vector<std::string> hosts;  // of the plan
  for (const PlannedNode& node : job.nodes) hosts.push_back(node.host);
  const std::string advice =
      "look at cables, switches and firewalls between them; choose the fabric with UCX_TLS and "
      "UCX_NET_DEVICES, or leave the node out (sbatch --exclude)";
  const auto count = static_cast<int>(hosts.size());
  const Links links = CollectLinks(nodes, count);
  if (!links.failed.empty()) {
    const std::vector<Pair> failed(links.failed.begin(), links.failed.end());
    return {check, Status::kFail,
            "do not reach each other: " + PairsText(failed, hosts) + " (" + links.problem + ")",
            advice, NodesOfAll(failed, hosts)};
  }
  const std::string problem = ProblemText(nodes);
  if (!problem.empty()) return {check, Status::kFail, problem, advice};
  if (count == 1) return {check, Status::kOk, "one node", ""};
  const bool all_tested = std::all_of(nodes.begin(), nodes.end(), [](const AnsweredNode& node) {
    return node.info->exchange.links_tested;
  });
  if (!all_tested) {
    return {check, Status::kNotKnown, UnavailableText(nodes),
            "the job may still fail to connect; ddlrun with UCX and a launcher with PMIx tests it"};
  }
  const std::string seen =
      CountText(static_cast<std::size_t>(links.ok), "pair") + " of " +
      CountText(hosts.size(), "node") + " talk" +
      (count > kMaxNodesOfAllPairs
           ? " (a sample, " + std::to_string(RoundsOf(count)) + " partners each)"
           : "") +
      ", the slowest " +
      (links.slowest.first < 0 ? std::string("not known")
                               : PairsText({links.slowest}, hosts) + " in " +
                                     SecondsText(links.slowest_seconds) + " there and back");
  if (links.slowest_seconds > job.limits.link_seconds) return {check, Status::kWarn, seen, advice};
  return {check, Status::kOk, seen, ""};
}

}  // namespace launcher
