// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/nodes_of_job.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(NodesNotStarted, AreNamedOnceInTheOrderOfTheirRanks) {
  const std::vector<std::string> hosts = {"n2", "n1", "n2", "n3", "n1"};
  EXPECT_THAT(NodesNotStarted(hosts, {}), ElementsAre("n2", "n1", "n3"));
  EXPECT_THAT(NodesNotStarted(hosts, {0, 1, 3}), ElementsAre("n2", "n1"));
  EXPECT_THAT(NodesNotStarted(hosts, {0, 1, 2, 3, 4}), IsEmpty());
}

TEST(SilentNodes, AreThoseOfWhichNoEndWasTold) {
  const std::vector<std::string> hosts = {"n4", "n1", "n2.site", "n3", "n4"};
  EXPECT_THAT(SilentNodes(hosts, {"n1.site", "n[2-3]"}), ElementsAre("n4"));
  EXPECT_THAT(SilentNodes(hosts, {"n3"}), ElementsAre("n4", "n1", "n2.site"));
  EXPECT_THAT(SilentNodes(hosts, {"n[1-4]"}), IsEmpty());
}

TEST(SilentNodes, AreNoneWhereNothingWasTold) {
  EXPECT_THAT(SilentNodes({"n1", "n2"}, {}), IsEmpty());
  EXPECT_THAT(SilentNodes({"n1", "n2"}, {"n[1-"}), IsEmpty());
}

}  // namespace
}  // namespace launcher
