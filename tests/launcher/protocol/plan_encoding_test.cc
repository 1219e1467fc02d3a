// SPDX-License-Identifier: Apache-2.0

#include "launcher/protocol/plan_encoding.h"

#include <random>
#include <stdexcept>

#include "tests/launcher/protocol/fake_plans.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

LaunchPlan Decode(const std::string& text) {
  TokenReader words(text);
  return DecodePlan(words);
}

void ExpectSame(const LaunchPlan& plan, const LaunchPlan& expected) {
  EXPECT_EQ(plan.cpus_per_rank, expected.cpus_per_rank);
  ASSERT_EQ(plan.nodes.size(), expected.nodes.size());
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    EXPECT_EQ(plan.nodes[i].host, expected.nodes[i].host);
    EXPECT_EQ(plan.nodes[i].gpus, expected.nodes[i].gpus);
    EXPECT_EQ(plan.nodes[i].ranks, expected.nodes[i].ranks);
  }
  ASSERT_EQ(plan.ranks.size(), expected.ranks.size());
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    EXPECT_EQ(plan.ranks[r].rank, expected.ranks[r].rank);
    EXPECT_EQ(plan.ranks[r].node, expected.ranks[r].node);
    EXPECT_EQ(plan.ranks[r].local_rank, expected.ranks[r].local_rank);
    EXPECT_EQ(plan.ranks[r].gpu, expected.ranks[r].gpu);
    EXPECT_EQ(plan.ranks[r].numa_os_index, expected.ranks[r].numa_os_index);
    EXPECT_EQ(plan.ranks[r].cores.size(), expected.ranks[r].cores.size());
    EXPECT_EQ(plan.ranks[r].cpus, expected.ranks[r].cpus);
  }
}

// The text that is expected, and the plan again out of it.
void ExpectWords(const LaunchPlan& plan, const std::string& text) {
  EXPECT_EQ(EncodePlan(plan), text);
  ExpectSame(Decode(text), plan);
}

TEST(PlanWords, SayOnceWhatEqualNodesHaveInCommon) {
  ExpectWords(EvenPlan(3, 2), "0 3 6 1 1 1 2:2 0:0:2:0-1,40-41 1:0:2:2-3,42-43 3:0:n:1:- 0:3:2");
}

TEST(PlanWords, OfRanksInTurnHaveARunForEachRound) {
  ExpectWords(EvenPlan(3, 2, true),
              "0 3 6 1 1 2 2:2 0:0:2:0-1,40-41 1:0:2:2-3,42-43 3:0:n:1:- 0:3:1 0:3:1");
}

TEST(PlanWords, OfUnevenNodesHaveAKindForEachSort) {
  ExpectWords(PlanOf({0, 0, 1, 2, 2}),
              "0 3 5 2 3 3 2:2 0:0:2:0-1,40-41 1:0:2:2-3,42-43 1:1 0:0:2:0-1,40-41 "
              "1:0:n1:-:- 1:1:n2:-:- 1:0:n3:-:- 0:1:2 1:1:1 2:1:2");
}

TEST(PlanWords, OfAnyOrderAreAListOfRuns) {
  ExpectWords(PlanOf({1, 0, 0, 1}),
              "0 2 4 1 1 3 2:2 0:0:2:0-1,40-41 1:0:2:2-3,42-43 2:0:n:1:- 1:1:1 0:1:2 1:1:1");
}

TEST(PlanWords, OfAPlanWithoutCoresOrGpus) {
  LaunchPlan plan = PlanOf({0});
  plan.cpus_per_rank = 5;
  plan.nodes[0].host = "gpu-7 \xc3\xa4:";
  plan.nodes[0].gpus = 0;
  plan.ranks[0].gpu = plan.ranks[0].numa_os_index = -1;
  plan.ranks[0].cores.clear();
  plan.ranks[0].cpus.clear();
  ExpectWords(plan, "5 1 1 1 1 1 0:1 -1:-1:0:- 1:0:gpu%2D7%20%C3%A4%3A:-:- 0:1:1");
}

TEST(PlanWords, FindTheNumberThatHostsDifferIn) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> vectors = {
      {{"n8", "n9", "n10"}, " 3:0:n:8:- "},
      {{"gpu098", "gpu099", "gpu100"}, " 3:0:gpu:098:- "},
      {{"n1-ib0", "n2-ib0"}, " 2:0:n:1:%2Dib0 "},
      {{"r0n1", "r0n2", "r1n1"}, " 2:0:r0n:1:- 1:0:r1n1:-:- "},
      {{"10.0.0.9", "10.0.0.10"}, " 2:0:10.0.0.:9:- "},
      {{"n1.a2.uk", "n2.a2.uk"}, " 2:0:n:1:.a2.uk "},
      {{"n09", "n010"}, " 1:0:n09:-:- 1:0:n010:-:- "},
      {{"n2", "n1"}, " 1:0:n2:-:- 1:0:n1:-:- "},
      {{"n1", "n1b"}, " 1:0:n1:-:- 1:0:n1b:-:- "},
      {{"1", "2"}, " 2:0:-:1:- "},
      {{"n1234567890", "n1234567891"}, " 1:0:n1234567890:-:- 1:0:n1234567891:-:- "},
      {{"a", "b"}, " 1:0:a:-:- 1:0:b:-:- "},
  };
  for (const auto& [hosts, words] : vectors) {
    LaunchPlan plan = EvenPlan(static_cast<int>(hosts.size()), 1);
    for (std::size_t i = 0; i < hosts.size(); ++i) plan.nodes[i].host = hosts[i];
    const std::string text = EncodePlan(plan);
    EXPECT_NE(text.find(words), std::string::npos) << text << ", not" << words;
    ExpectSame(Decode(text), plan);
  }
}

// Some nodes lack a GPU, some hosts break the pattern, ranks are shuffled: as a user's rankfile may
// have it.
TEST(PlanWords, DecodeToThePlanWhateverItsOrder) {
  std::mt19937 random(7);  // NOLINT(cert-msc51-cpp): the same plans in every run
  for (int round = 0; round < 200; ++round) {
    std::vector<int> order;
    const int nodes = 1 + static_cast<int>(random() % 20);
    for (int node = 0; node < nodes; ++node) {
      order.insert(order.end(), random() % 4 == 0 ? 1 + random() % 8 : 4, node);
    }
    if (round % 2 == 1) std::shuffle(order.begin(), order.end(), random);
    LaunchPlan plan = PlanOf(order);
    for (NodePlacement& node : plan.nodes) {
      if (random() % 8 == 0) node.host = "login" + std::to_string(random() % 1000);
    }
    ExpectSame(Decode(EncodePlan(plan)), plan);
  }
}

TEST(PlanWords, OfFourThousandEqualNodesAreShort) {
  EXPECT_LT(EncodePlan(EvenPlan(4096, 8)).size(), 500U);
  EXPECT_LT(EncodePlan(EvenPlan(4096, 8, true)).size(), 500U);
}

TEST(PlanWords, ThatContradictEachOtherAreRejected) {
  const std::string good = EncodePlan(PlanOf({0, 0, 1}));
  ASSERT_EQ(good,
            "0 2 3 2 2 2 2:2 0:0:2:0-1,40-41 1:0:2:2-3,42-43 1:1 0:0:2:0-1,40-41 "
            "1:0:n1:-:- 1:1:n2:-:- 0:1:2 1:1:1");
  EXPECT_NO_THROW(Decode(good));
  const std::vector<std::pair<std::string, std::string>> changes = {
      {"0 2 3 ", "0 1 3 "},  // nodes
      {"0 2 3 ", "0 3 3 "},
      {"0 2 3 ", "0 2 2 "},  // ranks
      {"0 2 3 ", "0 2 4 "},
      {" 3 2 2 2 ", " 3 1 2 2 "},  // kinds
      {" 3 2 2 2 ", " 3 2 1 2 "},  // runs of hosts
      {" 3 2 2 2 ", " 3 2 2 1 "},  // runs of ranks
      {" 3 2 2 2 ", " 3 2 2 3 "},
      {" 2:2 0:", " 2:1 0:"},            // ranks of a kind
      {":2:0-1,40-41", ":5:0-1,40-41"},  // cores
      {":2:0-1,40-41", ":-1:0-1,40-41"},
      {"0-1,", "0-2000000000,"},
      {"0-1,", "1-0,"},
      {"1:0:n1:-:-", "2:0:n1:-:-"},  // two nodes without a number
      {"1:0:n1:-:-", "1:0:n1:-:x"},
      {"1:0:n1:-:-", "2:0:n:x1:-"},
      {"1:0:n1:-:-", "0:0:n1:-:-"},
      {"1:0:n1:-:-", "1:2:n1:-:-"},  // a kind that is not there
      {"1:0:n1:-:-", "1:0:n1:1234567890:-"},
      {"1:0:n1:-:-", "1:0:n%2:-:-"},
      {" 0:1:2 1:1:1", " 0:1:1 1:1:2"},  // as many as the kinds do not have
      {" 0:1:2 1:1:1", " 0:1:2 2:1:1"},
      {" 0:1:2 1:1:1", " 0:1:2 1:2:1"},
      {" 0:1:2 1:1:1", " 0:1:2 1:1:0"},
      {" 0:1:2 1:1:1", " 0:1:2 1:1:1 1:1:1"},
      {" 0:1:2 1:1:1", " 0:1:2"},
  };
  for (const auto& [from, to] : changes) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    EXPECT_THROW(Decode(text), std::out_of_range) << text;
  }
  EXPECT_THROW(
      Decode("0 2000000000 2000000000 1 1 1 1:1 0:0:0:- 2000000000:0:n:1:- 0:2000000000:1"),
      std::out_of_range);
}

}  // namespace
}  // namespace launcher
