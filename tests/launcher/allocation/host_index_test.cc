// SPDX-License-Identifier: Apache-2.0

#include "launcher/allocation/host_index.h"

#include <gtest/gtest.h>

namespace launcher {
namespace {

TEST(HostIndex, NamesMayLackTheirDomain) {
  EXPECT_TRUE(IsSameHost("n1", "n1.cluster.ac.uk"));
  EXPECT_TRUE(IsSameHost("n1.cluster", "n1"));
  EXPECT_FALSE(IsSameHost("n1.here", "n1.there"));
  EXPECT_FALSE(IsSameHost("n1", "n11"));
}

// IsSameHost is the definition: every question to an index of these hosts is answered as a search
// by it answers.
TEST(HostIndex, FindsTheFirstThatIsTheSameHost) {
  const std::vector<std::string> hosts = {"n2.here", "n1.here", "n1", "n1.there", "n3",
                                          "n3.here", "n2.here", "n4", "",         ".here"};
  const HostIndex index(hosts);
  for (const char* asked :
       {"n1", "n1.here", "n1.there", "n1.elsewhere", "n2", "n2.here", "n2.there", "n3", "n3.here",
        "n3.there", "n4.here", "n5", "n5.here", "", ".here", "n"}) {
    std::optional<std::size_t> first;
    for (std::size_t i = 0; i < hosts.size() && !first; ++i) {
      if (IsSameHost(hosts[i], asked)) first = i;
    }
    EXPECT_EQ(index.Find(asked), first) << asked;
    EXPECT_EQ(index.Holds(asked), first.has_value()) << asked;
  }
}

TEST(HostIndex, GrowsAsHostsAreAdded) {
  HostIndex index;
  EXPECT_FALSE(index.Holds("n1"));
  index.Add("n2");
  index.Add("n1.here");
  EXPECT_EQ(index.Find("n1"), 1U);
}

}  // namespace
}  // namespace launcher
