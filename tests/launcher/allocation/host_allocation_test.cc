// SPDX-License-Identifier: Apache-2.0
#include "launcher/allocation/host_allocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/base/error.h"

namespace launcher {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

std::vector<std::pair<std::string, int>> HostsAndSlots(const Allocation& allocation) {
  std::vector<std::pair<std::string, int>> result;
  for (const AllocatedNode& node : allocation.nodes) {
    result.emplace_back(node.host, node.slots.value_or(-1));
    EXPECT_FALSE(node.gpus);
  }
  return result;
}

TEST(HostAllocation, ReadsHostsSlotsAndBrackets) {
  const Allocation allocation = AllocationFromHostList("h1,h2:4,gpu[01-02]:2,x[1,3]");
  EXPECT_EQ(allocation.origin, Allocation::Origin::kHostList);
  EXPECT_EQ(allocation.origin_text, "-H h1,h2:4,gpu[01-02]:2,x[1,3]");
  EXPECT_THAT(HostsAndSlots(allocation),
              ElementsAre(Pair("h1", -1), Pair("h2", 4), Pair("gpu01", 2), Pair("gpu02", 2),
                          Pair("x1", -1), Pair("x3", -1)));
}

TEST(HostAllocation, CountsARepeatedHostAsSlots) {
  EXPECT_THAT(HostsAndSlots(AllocationFromHostList("a,b,a,a")),
              ElementsAre(Pair("a", 3), Pair("b", -1)));
  EXPECT_THAT(HostsAndSlots(AllocationFromHostList("a:2,a")), ElementsAre(Pair("a", 3)));
}

std::string HostListRefusal(const std::string& text) {
  try {
    AllocationFromHostList(text);
  } catch (const LaunchError& error) {
    EXPECT_EQ(error.exit_code(), EX_USAGE);
    return error.what();
  }
  return "";
}

TEST(HostAllocation, RefusesBadHostListsWithTheColumn) {
  EXPECT_THAT(HostListRefusal(""), HasSubstr("column 1: a host is missing"));
  EXPECT_THAT(HostListRefusal("h1,,h2"), HasSubstr("column 4: a host is missing"));
  EXPECT_THAT(HostListRefusal("h1,h2:x"), AllOf(HasSubstr("column 7"), HasSubstr("-H gpu01")));
  EXPECT_THAT(HostListRefusal("h1:0"), HasSubstr("column 4"));
  EXPECT_THAT(HostListRefusal("h1,h[1-"), HasSubstr("column 8"));
  EXPECT_THAT(HostListRefusal("h1,-x"), HasSubstr("column 4"));
  EXPECT_THAT(HostListRefusal("h:1000000,h:1000000"), HasSubstr("column 11: too many slots on h"));
  EXPECT_THAT(HostListRefusal("h[1-65536],x"), HasSubstr("column 12: too many hosts"));
}

TEST(HostAllocation, ReadsAHostfile) {
  const Allocation allocation =
      AllocationFromHostfile("# racks\nh1\nh2 slots=4  # new\n\nh1\n", "hosts.txt");
  EXPECT_EQ(allocation.origin, Allocation::Origin::kHostfile);
  EXPECT_EQ(allocation.origin_text, "-hostfile hosts.txt");
  EXPECT_THAT(HostsAndSlots(allocation), ElementsAre(Pair("h1", 2), Pair("h2", 4)));
}

TEST(HostAllocation, RefusesABadHostfileWithLineAndColumn) {
  try {
    AllocationFromHostfile("h1\nh2 slots=many\n", "hosts.txt");
    FAIL();
  } catch (const LaunchError& error) {
    EXPECT_EQ(error.exit_code(), EX_DATAERR);
    EXPECT_THAT(error.what(), HasSubstr("hosts.txt:2:"));
  }
}

TEST(HostAllocation, IsThisMachineWithoutSlots) {
  const Allocation allocation = AllocationOfThisMachine("laptop");
  EXPECT_EQ(allocation.origin, Allocation::Origin::kThisMachine);
  EXPECT_THAT(HostsAndSlots(allocation), ElementsAre(Pair("laptop", -1)));
  EXPECT_FALSE(allocation.ranks);
}

}  // namespace
}  // namespace launcher
