// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "launcher/health/check_rules.h"
#include "tests/launcher/health/fake_node_info.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

// The nodes without which no pair is left, by the definition: the one in most pairs, of equal ones
// the later, is taken out with its pairs, and so on.
std::vector<std::string> NodesOfAllPairs(std::set<std::pair<int, int>> pairs) {
  std::vector<std::string> nodes;
  while (!pairs.empty()) {
    std::map<int, int> counts;
    for (const auto& [a, b] : pairs) {
      ++counts[a];
      ++counts[b];
    }
    std::pair<int, int> worst = {0, 0};  // pairs, node
    for (const auto& [node, count] : counts) worst = std::max(worst, {count, node});
    nodes.push_back("n" + std::to_string(worst.second + 1));
    std::erase_if(pairs, [&](const auto& pair) {
      return pair.first == worst.second || pair.second == worst.second;
    });
  }
  return nodes;
}

TEST(Connections, NameTheNodesOfAnyPairs) {
  std::mt19937 random(1);
  for (int graph = 0; graph < 500; ++graph) {
    const int count = 2 + static_cast<int>(random() % 11);
    const auto any_node = [&] { return static_cast<int>(random() % static_cast<unsigned>(count)); };
    FakeJob made(count);
    std::set<std::pair<int, int>> pairs;
    const int edges = 1 + static_cast<int>(random() % 20);
    for (int edge = 0; edge < edges; ++edge) {
      const int a = any_node();
      const int b = any_node();
      made.info[static_cast<std::size_t>(a)].exchange.failed.push_back({b, "lost", 0});
      pairs.insert(std::minmax(a, b));
    }
    ASSERT_EQ(made.Of("connections").bad_hosts, NodesOfAllPairs(pairs)) << "graph " << graph;
  }
}

}  // namespace
}  // namespace launcher
