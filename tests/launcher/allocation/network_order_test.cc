// SPDX-License-Identifier: Apache-2.0

#include "launcher/allocation/network_order.h"

#include <gtest/gtest.h>

#include <sstream>

namespace launcher {
namespace {

// Of "n1=pod1.s1 n2=pod2.s2 n3"; n3 is not in a known unit.
Allocation AllocationOf(const std::string& text) {
  Allocation allocation;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    AllocatedNode& node = allocation.nodes.emplace_back();
    const std::size_t equals = word.find('=');
    node.host = word.substr(0, equals);
    std::istringstream path(equals == std::string::npos ? "" : word.substr(equals + 1));
    for (std::string unit; std::getline(path, unit, '.');) node.network_path.push_back(unit);
  }
  return allocation;
}

std::string Ordered(const std::string& first, const std::string& text) {
  Allocation allocation = AllocationOf(text);
  OrderByNetwork(first, &allocation);
  std::string hosts;
  for (const AllocatedNode& node : allocation.nodes) {
    hosts += (hosts.empty() ? "" : " ") + node.host;
  }
  return hosts;
}

TEST(NetworkOrder, PutsNodesOfAUnitSideBySide) {
  const struct {
    const char *nodes, *first, *ordered;
  } cases[] = {
      {"n1=s1 n2=s2 n3=s1 n4=s2", "n1", "n1 n3 n2 n4"},
      {"n1=s1 n2=s2 n3=s1 n4=s2", "", "n1 n3 n2 n4"},
      {"n1=s1 n2=s2 n3=s1 n4=s2", "elsewhere", "n1 n3 n2 n4"},
      // The node of ddlrun is in front of its unit, and its unit in front of the others.
      {"n1=s1 n2=s2 n3=s1 n4=s2", "n4", "n4 n2 n1 n3"},
      {"n1=s1 n2=s2 n3=s1 n4=s2", "n3", "n3 n1 n2 n4"},
      // On each level.
      {"n1=p1.s1 n2=p2.s2 n3=p1.s3 n4=p2.s4 n5=p1.s1 n6=p2.s2", "n1", "n1 n5 n3 n2 n6 n4"},
      {"n1=p1.s1 n2=p2.s2 n3=p1.s3 n4=p2.s4 n5=p1.s1 n6=p2.s2", "n4", "n4 n2 n6 n1 n5 n3"},
      // Units of one name in other units are others.
      {"n1=p1.s n2=p2.s n3=p1.t n4=p2.s n5=p1.s", "n1", "n1 n5 n3 n2 n4"},
      // Nodes of no unit, or of less levels, stay together and take nobody's place.
      {"n1=s1 n2 n3=s1 n4", "n1", "n1 n3 n2 n4"},
      {"n1=p.s1 n2=p n3=p.s1", "n1", "n1 n3 n2"},
      {"n1=p n2=p.s1 n3=p", "n2", "n2 n1 n3"},
      {"n1 n2 n3", "n2", "n2 n1 n3"},
      {"n1=s1", "n1", "n1"},
      {"", "n1", ""},
  };
  for (const auto& test : cases) {
    EXPECT_EQ(Ordered(test.first, test.nodes), test.ordered) << test.nodes << ' ' << test.first;
  }
}

TEST(NetworkOrder, TakesAllThatIsKnownOfANodeAlong) {
  Allocation allocation = AllocationOf("n1=s1 n2=s2 n3=s1");
  for (int i = 0; i < 3; ++i) allocation.nodes[i].slots = i + 1;
  OrderByNetwork("n1", &allocation);
  EXPECT_EQ(allocation.nodes[1].host, "n3");
  EXPECT_EQ(allocation.nodes[1].slots, 3);
  EXPECT_EQ(NetworkText(allocation.nodes[1]), "s1");
}

TEST(NetworkText, IsOneWord) {
  EXPECT_EQ(NetworkText(AllocationOf("n1=pod1.s3").nodes[0]), "pod1.s3");
  EXPECT_EQ(NetworkText(AllocationOf("n1").nodes[0]), "");
}

}  // namespace
}  // namespace launcher
