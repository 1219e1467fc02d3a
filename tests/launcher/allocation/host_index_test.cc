// SPDX-License-Identifier: Apache-2.0

#include "launcher/allocation/host_index.h"

#include <gtest/gtest.h>

#include "rankfile/host_name.h"

namespace launcher {
namespace {

// rankfile::SameHost is the definition: every question to an index of these hosts is answered as a
// search by it answers.
TEST(HostIndex, FindsTheFirstThatIsTheSameHost) {
  const std::vector<std::string> hosts = {"n2.here", "n1.here",  "n1",       "n1.there", "n3",
                                          "n3.here", "n2.here",  "n4",       "",         ".here",
                                          "N5.Here", "10.0.0.1", "10.0.0.2", "10"};
  const HostIndex index(hosts);
  for (const char* asked :
       {"n1",      "n1.here", "n1.there", "n1.elsewhere", "n2", "n2.here", "n2.there",
        "n3",      "n3.here", "n3.there", "n4.here",      "n5", "n5.here", "N1",
        "N4.HERE", "10",      "10.0.0.2", "10.0.0.3",     "",   ".here",   "n"}) {
    std::optional<std::size_t> first;
    for (std::size_t i = 0; i < hosts.size() && !first; ++i) {
      if (rankfile::SameHost(hosts[i], asked)) first = i;
    }
    EXPECT_EQ(index.Find(asked), first) << asked;
    EXPECT_EQ(index.Holds(asked), first.has_value()) << asked;
  }
}

TEST(HostIndex, GrowsAsHostsAreAdded) {
  HostIndex index;
  EXPECT_TRUE(index.IsEmpty());
  EXPECT_FALSE(index.Holds("n1"));
  index.Add("n2");
  index.Add("n1.here");
  EXPECT_FALSE(index.IsEmpty());
  EXPECT_EQ(index.Find("n1"), 1U);
}

}  // namespace
}  // namespace launcher
