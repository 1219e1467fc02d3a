// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/health/judge.h"
#include "tests/launcher/health/made_up_facts.h"

namespace launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kOne = "0f1e2d3c4b5a69788796a5b4c3d2e1f0.1";
const std::string kTwo = "0f1e2d3c4b5a69788796a5b4c3d2e1f0.2";
const std::string kOther = "0f1e2d3c0000000000000000000000ff.1";  // alike in what is shown

// A job whose nodes are in these domains.
MadeUpJob JobOf(const std::vector<std::string>& domains) {
  MadeUpJob made(static_cast<int>(domains.size()));
  for (std::size_t node = 0; node < domains.size(); ++node) {
    for (GpuFacts& gpu : made.facts[node].gpus) gpu.nvlink_domain = domains[node];
  }
  return made;
}

TEST(NvlinkDomains, ArePassedWhereTheirNodesAreSideBySide) {
  const Verdict one = JobOf({kOne, kOne, kOne}).Of("nvlink-domains");
  EXPECT_EQ(one.status, Status::kOk);
  EXPECT_EQ(one.seen, "0f1e2d3c.1 (n[1-3])");
  const Verdict two = JobOf({kTwo, kTwo, kOne, kOne}).Of("nvlink-domains");
  EXPECT_EQ(two.status, Status::kOk);
  EXPECT_EQ(two.seen, "0f1e2d3c.2 (n[1-2]), 0f1e2d3c.1 (n[3-4])");
  EXPECT_EQ(JobOf({"", ""}).Of("nvlink-domains").seen, "no GPU reaches other nodes over NVLink");
}

TEST(NvlinkDomains, AreTornByNodesOfOthersBetweenThem) {
  const Verdict verdict = JobOf({kOne, kTwo, kOne, kTwo}).Of("nvlink-domains");
  EXPECT_EQ(verdict.status, Status::kWarn);
  EXPECT_EQ(verdict.seen,
            "nodes of a domain are not side by side: 0f1e2d3c.1 (n[1,3]), 0f1e2d3c.2 (n[2,4])");
  EXPECT_THAT(verdict.advice, HasSubstr("-H n[1,3],n[2,4]"));
  EXPECT_THAT(verdict.bad_hosts, IsEmpty());
  EXPECT_EQ(JobOf({kOne, kOther, kOne}).Of("nvlink-domains").status, Status::kWarn);
  EXPECT_EQ(JobOf({kOne, kOther, kOther}).Of("nvlink-domains").status, Status::kOk);
}

TEST(NvlinkDomains, WarnOfANodeThatHasNotJoined) {
  const Verdict verdict = JobOf({kOne, "", kOne}).Of("nvlink-domains");
  EXPECT_EQ(verdict.status, Status::kWarn);
  EXPECT_THAT(verdict.seen, HasSubstr("none (n2)"));
  const Verdict last = JobOf({kOne, kOne, ""}).Of("nvlink-domains");
  EXPECT_EQ(last.status, Status::kWarn);
  EXPECT_THAT(last.advice, HasSubstr("nvidia-smi -q"));
}

TEST(NvlinkDomains, AreThoseOfEachGpu) {
  MadeUpJob made = JobOf({kOne, kOne});
  made.facts[1].gpus[0].nvlink_domain = kTwo;
  EXPECT_EQ(made.Of("nvlink-domains").status, Status::kOk);
  EXPECT_THAT(made.Of("nvlink-domains").seen, HasSubstr("0f1e2d3c.1 (n1)"));
  EXPECT_EQ(made.Of("imex").seen, "not needed: no NVLink between these nodes");
}

TEST(Imex, IsNeededBetweenNodesOfOneDomainAlone) {
  MadeUpJob made = JobOf({kOne, kTwo});
  for (NodeFacts& facts : made.facts) facts.imex_problem = "there is none";
  EXPECT_EQ(made.Of("imex").status, Status::kOk);
  EXPECT_EQ(made.Of("imex").seen, "not needed: no NVLink between these nodes");
  made = JobOf({"", ""});
  made.facts[0].imex_problem = "there is none";
  EXPECT_EQ(made.Of("imex").status, Status::kOk);
  EXPECT_EQ(JobOf({kOne, kOne}).Of("imex").seen, "a channel can be opened on 2 nodes");
}

TEST(Imex, FailsOnANodeThatLacksAChannelWhereOthersHaveOne) {
  MadeUpJob made = JobOf({kOne, kOne, kOne, kTwo});
  made.facts[1].imex_problem = "channel0: Permission denied";
  made.facts[3].imex_problem = "there is none";  // alone in its domain
  const Verdict verdict = made.Of("imex");
  EXPECT_EQ(verdict.status, Status::kFail);
  EXPECT_EQ(verdict.seen, "no channel: channel0: Permission denied (n2)");
  EXPECT_THAT(verdict.bad_hosts, ElementsAre("n2"));
  EXPECT_THAT(verdict.advice, HasSubstr("NCCL_MNNVL_ENABLE"));
}

TEST(Imex, IsAWarningWhereAllNodesLackIt) {
  MadeUpJob made = JobOf({kOne, kOne});
  for (NodeFacts& facts : made.facts) facts.imex_problem = "there is none";
  const Verdict verdict = made.Of("imex");
  EXPECT_EQ(verdict.status, Status::kWarn);
  EXPECT_EQ(verdict.seen, "no channel: there is none (n[1-2])");
  EXPECT_THAT(verdict.bad_hosts, IsEmpty());
}

}  // namespace
}  // namespace launcher
