// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/launcher/health/made_up_facts.h"

namespace launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Clocks, WarnOfANodeThatIsOffByMoreThanASecond) {
  MadeUpJob made(3);
  made.facts[1].exchange.clock_seconds += 12.3;
  Verdict verdict = made.Of("clocks");
  EXPECT_EQ(verdict.status, Status::kWarn);
  EXPECT_EQ(verdict.seen, "12.3 s ahead (n2)");
  made.facts[1].exchange.clock_seconds -= 60;
  EXPECT_EQ(made.Of("clocks").seen, "47.7 s behind (n2)");
}

TEST(Clocks, MayDifferByTheTimeThatNodesTakeToLeaveABarrier) {
  MadeUpJob made(2);
  made.facts[1].exchange.clock_seconds += 0.25;
  const Verdict verdict = made.Of("clocks");
  EXPECT_EQ(verdict.status, Status::kOk);
  EXPECT_EQ(verdict.seen, "in step within 250 ms");
}

TEST(Clocks, AreNotKnownWithoutAnExchange) {
  MadeUpJob made(2);
  for (NodeFacts& facts : made.facts) {
    facts.exchange = ExchangeFacts();
    facts.exchange.unavailable = "the launcher gives no PMIx";
  }
  const Verdict verdict = made.Of("clocks");
  EXPECT_EQ(verdict.status, Status::kNotKnown);
  EXPECT_THAT(verdict.seen, HasSubstr("the launcher gives no PMIx"));
}

TEST(Versions, FailWhenTheyDiffer) {
  MadeUpJob made(2);
  made.facts[1].mpi = "Open MPI v5.0.1";
  const Verdict verdict = made.Of("versions");
  EXPECT_EQ(verdict.status, Status::kFail);
  EXPECT_THAT(verdict.seen, HasSubstr("Open MPI v5.0.1, PMIx 4.2.2, the launcher's PMIx 4.2.2, UCX "
                                      "1.13.1 (n2)"));
}

TEST(Versions, AreNotKnownWithoutAnMpiLibrary) {
  MadeUpJob made(1);
  made.facts[0].mpi.clear();
  EXPECT_EQ(made.Of("versions").status, Status::kNotKnown);
}

TEST(Connections, OfManyNodesAreASampleWhoseSizeIsSaid) {
  EXPECT_THAT(MadeUpJob(64).Of("connections").seen, HasSubstr(" of 64 nodes talk, the slowest "));
  EXPECT_THAT(MadeUpJob(65).Of("connections").seen,
              HasSubstr(" of 65 nodes talk (a sample, 8 partners each), the slowest "));
}

TEST(Connections, CountThePairsAndNameTheSlowest) {
  EXPECT_EQ(MadeUpJob(4).Of("connections").seen,
            "6 pairs of 4 nodes talk, the slowest n3 with n4 in 3.00 ms there and back");
}

TEST(Connections, TakeTheSlowestFromThePartnersOfTheFirstNode) {
  MadeUpJob made(3);
  made.facts[2].exchange.slowest = {0, "", 0.5};
  EXPECT_THAT(made.Of("connections").seen, HasSubstr("the slowest n1 with n3 in 500 ms"));
}

TEST(Connections, NameThePairThatFails) {
  MadeUpJob made(4);
  made.facts[1].exchange.failed = {{2, "no answer within 5 s", 0}};
  const Verdict verdict = made.Of("connections");
  EXPECT_EQ(verdict.status, Status::kFail);
  EXPECT_EQ(verdict.seen, "do not reach each other: n2 with n3 (no answer within 5 s)");
  EXPECT_THAT(verdict.bad_hosts, ElementsAre("n3"));  // either of them; ddlrun is on the first
}

TEST(Connections, NameTheNodeThatAllFailingPairsShareOnce) {
  MadeUpJob made(5);
  made.facts[0].exchange.failed = {{2, "Connection reset", 0}, {1, "Connection reset", 0}};
  made.facts[1].exchange.failed = {{2, "Connection reset", 0}};
  made.facts[2].exchange.failed = {{3, "Connection reset", 0}, {4, "Connection reset", 0}};
  EXPECT_EQ(made.Of("connections").seen,
            "do not reach each other: n3 with n[1-2,4-5], n1 with n2 (Connection reset)");
  EXPECT_THAT(made.Of("connections").bad_hosts, ElementsAre("n3", "n2"));
}

TEST(Connections, NameAPairOnceThatBothEndsName) {
  MadeUpJob made(3);
  made.facts[1].exchange.failed = {{2, "no answer", 0}};
  made.facts[2].exchange.failed = {{1, "no answer", 0}};
  EXPECT_EQ(made.Of("connections").seen, "do not reach each other: n2 with n3 (no answer)");
}

TEST(Connections, CountWhatIsTooMuchToName) {
  MadeUpJob made(40);
  for (int node = 0; node < 40; node += 2) {
    made.facts[static_cast<std::size_t>(node)].exchange.failed = {{node + 1, "lost", 0}};
  }
  EXPECT_THAT(made.Of("connections").seen, HasSubstr("n15 with n16 and 12 pairs more (lost)"));
}

TEST(Connections, IgnoreNodesThatDoNotExist) {
  MadeUpJob made(2);
  made.facts[0].exchange.failed = {{77, "lost", 0}, {-5, "lost", 0}};
  made.facts[0].exchange.slowest = {77, "", 5};
  made.facts[1].node = -3;
  EXPECT_EQ(made.Of("connections").status, Status::kOk);
}

TEST(Connections, FailWhenTheExchangeFails) {
  MadeUpJob made(2);
  made.facts[1].exchange.problem = "PMIx_Init: UNREACHABLE";
  const Verdict verdict = made.Of("connections");
  EXPECT_EQ(verdict.status, Status::kFail);
  EXPECT_EQ(verdict.seen, "PMIx_Init: UNREACHABLE (n2)");
}

TEST(Connections, AreNotKnownWithoutPmixOrUcx) {
  MadeUpJob made(2);
  for (NodeFacts& facts : made.facts) {
    facts.exchange.links_tested = false;
    facts.exchange.unavailable = "ddlrun was built without UCX";
  }
  const Verdict verdict = made.Of("connections");
  EXPECT_EQ(verdict.status, Status::kNotKnown);
  EXPECT_EQ(verdict.seen, "ddlrun was built without UCX (n[1-2])");
}

TEST(Connections, AreNotKnownWhenNodesWereEndedBeforeTheyMet) {
  MadeUpJob made(3);
  made.facts[2] = NodeFacts();
  for (std::size_t node = 0; node < 2; ++node) made.facts[node].exchange = ExchangeFacts();
  for (const char* check : {"clocks", "connections"}) {
    const Verdict verdict = made.Of(check);
    EXPECT_EQ(verdict.status, Status::kNotKnown) << check;
    EXPECT_EQ(verdict.seen, "the nodes did not get as far as meeting");
  }
}

TEST(Connections, WarnWhenAPairTakesLongerThanASecond) {
  MadeUpJob made(2);
  made.facts[0].exchange.slowest = {1, "", kLinkWantedSeconds};
  EXPECT_EQ(made.Of("connections").status, Status::kOk);
  made.facts[0].exchange.slowest = {1, "", 1.5};
  EXPECT_EQ(made.Of("connections").status, Status::kWarn);
}

}  // namespace
}  // namespace launcher
