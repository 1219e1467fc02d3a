// SPDX-License-Identifier: Apache-2.0

#include "launcher/health/verdict.h"

#include <gtest/gtest.h>

#include "launcher/health/health_check.h"

namespace launcher {
namespace {

TEST(VerdictTable, HasALinePerVerdictWithWhatToDo) {
  EXPECT_EQ(VerdictTable({{"shm", Status::kOk, "2.0 GiB free", ""},
                          {"clocks", Status::kNotKnown, "no PMIx (n1)", "chronyc tracking"},
                          {"infiniband", Status::kWarn, "1 port (n2)", "look"},
                          {"connections", Status::kFail, "n1 with n2", "cables"}}),
            "check        verdict    what was seen: what to do\n"
            "shm          ok         2.0 GiB free\n"
            "clocks       not known  no PMIx (n1): chronyc tracking\n"
            "infiniband   warn       1 port (n2): look\n"
            "connections  fail       n1 with n2: cables\n");
}

TEST(AnyFailed, IsNotMovedByWarningsAndWhatIsNotKnown) {
  EXPECT_FALSE(AnyFailed({{"a", Status::kWarn, "", ""}, {"b", Status::kNotKnown, "", ""}}));
  EXPECT_TRUE(AnyFailed({{"a", Status::kOk, "", ""}, {"b", Status::kFail, "", ""}}));
}

TEST(HostsText, CompressesAndListsWhatCannotBe) {
  EXPECT_EQ(HostsText({"gpu025", "gpu026", "login"}), "gpu[025-026],login");
  EXPECT_EQ(HostsText({"a b", "c"}), "a b,c");
}

TEST(BadNodes, AreTheHostsOfAllVerdictsWithAllReasons) {
  Verdict gpus = {"gpus", Status::kFail, "2 planned, 1 seen (n2)", "", {"n2"}};
  Verdict links = {"connections", Status::kFail, "do not reach each other", "", {"n4", "n2"}};
  const std::vector<BadNode> bad = BadNodes({gpus, {"shm", Status::kFail, "", ""}, links});
  ASSERT_EQ(bad.size(), 2U);
  EXPECT_EQ(bad[0].host, "n2");
  EXPECT_EQ(bad[0].reason, "gpus: 2 planned, 1 seen (n2); connections: do not reach each other");
  EXPECT_EQ(bad[1].host, "n4");
  EXPECT_EQ(bad[1].reason, "connections: do not reach each other");
}

TEST(OneRankPerNode, KeepsNodesAndTheirGpusAndBindsNothing) {
  Plan plan;
  for (const char* host : {"n3", "n1"}) {
    NodePlan& node = plan.nodes.emplace_back();
    node.host = host;
    node.gpus = 4;
    node.allocated_node = 2;
  }
  plan.nodes[0].ranks = {0, 1};
  plan.nodes[1].ranks = {2};
  plan.ranks = {{0, 0, 0, 0, 0, {0}, {0}}, {1, 0, 1, 1, 0, {1}, {1}}, {2, 1, 0, 0, 0, {0}, {0}}};
  const Plan checks = OneRankPerNode(plan);
  ASSERT_EQ(checks.nodes.size(), 2U);
  EXPECT_EQ(checks.nodes[1].host, "n1");
  EXPECT_EQ(checks.nodes[1].gpus, 4);
  EXPECT_EQ(checks.nodes[1].allocated_node, 2);
  EXPECT_EQ(checks.nodes[1].ranks, std::vector<int>{1});
  ASSERT_EQ(checks.ranks.size(), 2U);
  EXPECT_EQ(checks.ranks[1].node, 1);
  EXPECT_EQ(checks.ranks[1].gpu, -1);
  EXPECT_TRUE(checks.ranks[1].cpus.empty());
}

}  // namespace
}  // namespace launcher
