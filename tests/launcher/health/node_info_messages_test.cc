// SPDX-License-Identifier: Apache-2.0

#include "launcher/base/error.h"
#include "launcher/health/health_check.h"
#include "launcher/health/node_info.h"
#include "launcher/health/pair_schedule.h"
#include "launcher/health/verdict.h"
#include "tests/launcher/health/fake_node_info.h"
#include "tests/launcher/protocol/fake_plans.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

NodeInfo RichNode(int node) {
  NodeInfo info = HealthyNode(node);
  info.gpus[1].processes = {{1, 2}, {3, -1}};
  info.gpus[2].remap_pending = info.gpus[3].remap_failed = true;
  info.gpu_problem = "NVML: no";
  info.shm_error = "Permission denied";
  info.other_users = "fs.protected_regular is 0";
  info.master = {"n1", "Name or service not known"};
  info.exchange.failed = {{2, "lost", 0}};
  info.exchange.unavailable = "nothing";
  info.exchange.problem = "all";
  return info;
}

TEST(NodeInfo, AreTheSameAfterEncodingAndDecoding) {
  const std::string text = EncodeNodeInfo(RichNode(3));
  EXPECT_EQ(EncodeNodeInfo(DecodeNodeInfo(text)), text);
  EXPECT_EQ(DecodeNodeInfo(text).gpus[1].processes[0].bytes, 2);
  EXPECT_EQ(DecodeNodeInfo(text).exchange.failed[0].problem, "lost");
  EXPECT_EQ(DecodeNodeInfo(text).master.address, "n1");
  EXPECT_EQ(DecodeNodeInfo(text).master.problem, "Name or service not known");
}

TEST(NodeInfo, HaveDetailsOnlyWhereTheyWereAskedFor) {
  NodeInfo info = RichNode(3);
  EXPECT_EQ(EncodeNodeInfo(info).find("details"), std::string::npos);
  EXPECT_TRUE(DecodeNodeInfo(EncodeNodeInfo(info)).details.empty());
  info.details = {{"SMT", "on"}, {"network ib0", "up"}};
  const NodeInfo read = DecodeNodeInfo(EncodeNodeInfo(info));
  ASSERT_EQ(read.details.size(), 2U);
  EXPECT_EQ(read.details[1].name, "network ib0");
  EXPECT_EQ(read.details[1].text, "up");
}

TEST(NodeInfo, AreAsciiWhateverAKernelOrDriverSays) {
  NodeInfo info = HealthyNode(0);
  info.cpu_model = "caf\xe9 \xc3\xa9\n";
  for (const char character : EncodeNodeInfo(info)) {
    EXPECT_TRUE(character >= ' ' && character < 127);
  }
}

TEST(NodeInfo, OfAnotherVersionAreRejected) {
  for (const char* text : {"", "{", "[]", "{\"node\":1}", "{\"node\":\"x\"}"}) {
    EXPECT_THROW(DecodeNodeInfo(text), LaunchError) << text;
  }
}

TEST(FactsLines, AreShortEnoughForSrunToKeepWhole) {
  for (const std::string& line : Lines(FormatNodeInfo(RichNode(99999), 2, NodeInfoKind::kAll))) {
    EXPECT_LT(line.size() + 1, 1024U);
  }
}

TEST(NodeInfoReader, PutsLinesOfManyNodesInAnyOrderTogether) {
  NodeInfoReader reader(3);
  std::vector<std::string> lines = Lines(FormatNodeInfo(RichNode(2), 0, NodeInfoKind::kAll));
  ASSERT_GT(lines.size(), 1U);
  for (const std::string& line : Lines(FormatNodeInfo(RichNode(0), 0, NodeInfoKind::kAll)))
    lines.push_back(line);
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) EXPECT_TRUE(reader.Add(*line));
  const std::vector<NodeInfo> info = reader.Facts();
  EXPECT_EQ(EncodeNodeInfo(info[0]), EncodeNodeInfo(RichNode(0)));
  EXPECT_EQ(info[1].host, "");
  EXPECT_EQ(EncodeNodeInfo(info[2]), EncodeNodeInfo(RichNode(2)));
}

TEST(NodeInfoReader, TakesTheLastReportThatIsWhole) {
  NodeInfoReader reader(1);
  NodeInfo info = RichNode(0);
  for (int report = 0; report < 3; ++report) {
    info.cpus = report;
    const std::vector<std::string> lines = Lines(FormatNodeInfo(info, report, NodeInfoKind::kAll));
    ASSERT_GT(lines.size(), 1U);
    for (const std::string& line : lines) {
      if (report < 2 || line != lines.back()) reader.Add(line);
    }
  }
  EXPECT_EQ(reader.Facts()[0].cpus, 1);
}

// What a node is by itself is told once.
TEST(NodeInfoReader, AddsLaterReportsToTheFirst) {
  NodeInfoReader reader(2);
  NodeInfo info = RichNode(0);
  info.exchange = ConnectivityResult();
  info.directory.write_error = "no answer";
  info.master = {};
  for (const std::string& line : Lines(FormatNodeInfo(info, 0, NodeInfoKind::kAll)))
    reader.Add(line);
  EXPECT_EQ(EncodeNodeInfo(reader.Facts()[0]), EncodeNodeInfo(info));

  const std::string later = FormatNodeInfo(RichNode(0), 1, NodeInfoKind::kLater);
  EXPECT_LT(2 * later.size(), FormatNodeInfo(RichNode(0), 1, NodeInfoKind::kAll).size());
  for (const std::string& line : Lines(later)) EXPECT_TRUE(reader.Add(line));
  EXPECT_EQ(EncodeNodeInfo(reader.Facts()[0]), EncodeNodeInfo(RichNode(0)));
}

// Without the first report nobody knows what the node is; mpirun's copy at the end tells it.
TEST(NodeInfoReader, TakesLaterFactsAloneForNoAnswer) {
  NodeInfoReader reader(1);
  for (const std::string& line : Lines(FormatNodeInfo(RichNode(0), 1, NodeInfoKind::kLater))) {
    EXPECT_TRUE(reader.Add(line));
  }
  EXPECT_EQ(reader.Facts()[0].host, "");
  for (const std::string& line : Lines(FormatNodeInfo(RichNode(0), 3, NodeInfoKind::kAll))) {
    reader.Add(line);
  }
  EXPECT_EQ(EncodeNodeInfo(reader.Facts()[0]), EncodeNodeInfo(RichNode(0)));
}

TEST(NodeInfo, OfAnotherVersionAreRejectedLaterToo) {
  for (const char* text :
       {"", "{", "[]", "{\"directory\":{}}", "{\"directory\":1,\"exchange\":{}}"}) {
    NodeInfo info = RichNode(0);
    EXPECT_THROW(DecodeLaterInfo(text, &info), LaunchError) << text;
    EXPECT_EQ(EncodeNodeInfo(info), EncodeNodeInfo(RichNode(0)));
  }
}

TEST(NodeInfo, OfAVersionThatLooksNoNameUpAreRejected) {
  std::string text = EncodeLaterInfo(RichNode(0));
  NodeInfo info = RichNode(1);
  text.replace(text.find("\"master\""), 8, "\"mister\"");
  EXPECT_THROW(DecodeLaterInfo(text, &info), LaunchError);
  EXPECT_EQ(EncodeNodeInfo(info), EncodeNodeInfo(RichNode(1)));
}

TEST(NodeInfoReader, PassesOverTheTagsOfMpirun) {
  NodeInfoReader reader(1);
  for (const std::string& line : Lines(FormatNodeInfo(HealthyNode(0), 0, NodeInfoKind::kAll))) {
    EXPECT_TRUE(reader.Add("[1,0]<stdout>:" + line));
  }
  EXPECT_EQ(reader.Facts()[0].host, "n1");
}

TEST(NodeInfoReader, FindsALineBehindHalfAnotherAndDropsTheHalves) {
  NodeInfoReader reader(2);
  const std::vector<std::string> own = Lines(FormatNodeInfo(HealthyNode(0), 0, NodeInfoKind::kAll));
  const std::vector<std::string> other =
      Lines(FormatNodeInfo(HealthyNode(1), 0, NodeInfoKind::kAll));
  ASSERT_GT(own.size(), 1U);
  EXPECT_TRUE(reader.Add(own[0].substr(0, 300) + other[0]));
  EXPECT_FALSE(reader.Add(own[0].substr(300)));
  EXPECT_FALSE(reader.Add(own[0].substr(0, 300)));
  for (std::size_t part = 1; part < own.size(); ++part) reader.Add(own[part]);
  for (std::size_t part = 1; part < other.size(); ++part) reader.Add(other[part]);
  EXPECT_EQ(reader.Facts()[0].host, "");
  EXPECT_EQ(reader.Facts()[1].host, "n2");
}

TEST(NodeInfoReader, LeavesOtherLinesAlone) {
  NodeInfoReader reader(2);
  for (const char* line : {"", "hello", "ddlrun-node-check: what",
                           "ddlrun-node-check: 2 0 1/1 2 {}", "ddlrun-node-check: -1 0 1/1 2 {}",
                           "ddlrun-node-check: 0 0 2/1 2 {}", "ddlrun-node-check: 0 0 0/1 2 {}",
                           "ddlrun-node-check: 0 9 1/1 2 {}", "ddlrun-node-check: 0 0 1/9999 2 {}",
                           "ddlrun-node-check: 0 0 1/1 3 {}", "ddlrun-node-check: 0 0 1/1 2"}) {
    EXPECT_FALSE(reader.Add(line)) << line;
  }
  EXPECT_EQ(reader.Facts()[0].host, "");
}

TEST(PairSchedule, EveryPairMeetsOnceAndNobodyHasTwoPartners) {
  for (int nodes = 2; nodes <= kMaxNodesOfAllPairs; ++nodes) {
    const int rounds = nodes % 2 == 0 ? nodes - 1 : nodes;
    std::set<std::pair<int, int>> met;
    for (int node = 0; node < nodes; ++node) {
      const std::vector<int> partners = PartnersByRound(node, nodes);
      ASSERT_EQ(partners.size(), static_cast<std::size_t>(rounds));
      for (std::size_t round = 0; round < partners.size(); ++round) {
        const int partner = partners[round];
        if (partner < 0) continue;
        ASSERT_NE(partner, node);
        ASSERT_LT(partner, nodes);
        EXPECT_EQ(PartnersByRound(partner, nodes)[round], node);
        if (node < partner) {
          EXPECT_TRUE(met.emplace(node, partner).second);
        }
      }
    }
    EXPECT_EQ(met.size(), static_cast<std::size_t>(nodes * (nodes - 1) / 2)) << nodes;
  }
}

// Of more nodes each has a few partners, one at a time.
TEST(PairSchedule, ManyNodesMeetASampleOfPairs) {
  for (const int nodes : {65, 66, 100, 127, 128, 129, 1000, 1023, 4095, 4096, 4097}) {
    const int rounds = RoundsOf(nodes);
    EXPECT_LE(rounds, 1 + std::ceil(std::log2(nodes))) << nodes;
    for (int node = 0; node < nodes; ++node) {
      const std::vector<int> partners = PartnersByRound(node, nodes);
      ASSERT_EQ(static_cast<int>(partners.size()), rounds);
      std::set<int> others;
      for (std::size_t round = 0; round < partners.size(); ++round) {
        if (partners[round] < 0) continue;
        ASSERT_NE(partners[round], node);
        ASSERT_LT(partners[round], nodes);
        ASSERT_EQ(PartnersByRound(partners[round], nodes)[round], node);
        ASSERT_TRUE(others.insert(partners[round]).second);
      }
      ASSERT_GE(static_cast<int>(others.size()), rounds - 1) << nodes;
    }
  }
}

// Whichever node a walk from partner to partner starts at, it comes to all others, and soon.
TEST(PairSchedule, ASampleHoldsAllNodesTogether) {
  for (const int nodes : {65, 66, 1000, 4095, 4096}) {
    std::vector<int> steps(static_cast<std::size_t>(nodes), -1);
    std::vector<int> known = {nodes / 3};
    steps[static_cast<std::size_t>(known[0])] = 0;
    for (std::size_t i = 0; i < known.size(); ++i) {
      for (const int partner : PartnersByRound(known[i], nodes)) {
        if (partner < 0 || steps[static_cast<std::size_t>(partner)] >= 0) continue;
        steps[static_cast<std::size_t>(partner)] = steps[static_cast<std::size_t>(known[i])] + 1;
        known.push_back(partner);
      }
    }
    EXPECT_EQ(static_cast<int>(known.size()), nodes);
    EXPECT_LE(*std::max_element(steps.begin(), steps.end()), RoundsOf(nodes)) << nodes;
  }
}

TEST(PairSchedule, SaysHowLongItMayTake) {
  const std::chrono::milliseconds limit(5000);
  EXPECT_EQ(RoundsOf(64), 63);
  EXPECT_EQ(LongestTest(64, limit).count(), 11300);
  EXPECT_EQ(RoundsOf(4096), 13);
  EXPECT_EQ(LongestTest(4096, limit).count(), 6300);
}

TEST(PairSchedule, OneNodeHasNobodyToMeet) { EXPECT_TRUE(PartnersByRound(0, 1).empty()); }

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
  LaunchPlan plan;
  for (const char* host : {"n3", "n1"}) {
    NodePlacement& node = plan.nodes.emplace_back();
    node.host = host;
    node.gpus = 4;
    node.allocated_node = 2;
  }
  plan.nodes[0].ranks = {0, 1};
  plan.nodes[1].ranks = {2};
  plan.ranks = {{0, 0, 0, 0, 0, {0}, {0}}, {1, 0, 1, 1, 0, {1}, {1}}, {2, 1, 0, 0, 0, {0}, {0}}};
  const LaunchPlan checks = OneRankPerNode(plan);
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

TEST(CheckAnnouncement, SaysHowManyPartnersANodeHasAndHowLongItMayTake) {
  EXPECT_EQ(CheckAnnouncement(EvenPlan(1, 4)), "");
  EXPECT_EQ(CheckAnnouncement(EvenPlan(64, 4)),
            "ddlrun: checking 64 nodes, each against all others: at most 11.3 s once they have "
            "met, 60 s in any case\n");
  EXPECT_EQ(CheckAnnouncement(EvenPlan(4096, 1)),
            "ddlrun: checking 4096 nodes, each against 13 others: at most 6.3 s once they have "
            "met, 100 s in any case\n");
}

TEST(OneRankPerNode, KeepsNodesAndTheirGpus) {
  const LaunchPlan checks = OneRankPerNode(EvenPlan(3, 8));
  ASSERT_EQ(checks.nodes.size(), 3U);
  ASSERT_EQ(checks.ranks.size(), 3U);
  EXPECT_EQ(checks.nodes[2].host, "n3");
  EXPECT_EQ(checks.nodes[2].gpus, 8);
  EXPECT_EQ(checks.nodes[2].ranks, std::vector<int>{2});
  EXPECT_EQ(checks.ranks[2].node, 2);
}

}  // namespace
}  // namespace launcher
