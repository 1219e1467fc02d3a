// SPDX-License-Identifier: Apache-2.0

#include "launcher/report/node_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/launcher/health/made_up_facts.h"

namespace launcher {
namespace {

// "name: text (hosts)" of each line of this name.
std::vector<std::string> Of(const std::string& name, const std::vector<ReportLine>& lines) {
  std::vector<std::string> texts;
  for (const ReportLine& line : lines) {
    if (line.name != name) continue;
    texts.push_back(line.text + (line.hosts.empty() ? "" : " (" + HostsText(line.hosts) + ")"));
  }
  return texts;
}

using ::testing::ElementsAre;

TEST(NodeLines, OfNodesThatAgreeAreToldOnce) {
  MadeUpJob job(4);
  for (NodeFacts& facts : job.facts) facts.details = {{"SMT", "on"}};
  const std::vector<ReportLine> lines = NodeLines(job.facts);
  EXPECT_THAT(Of("kernel", lines), ElementsAre("4.18.0"));
  EXPECT_THAT(Of("SMT", lines), ElementsAre("on"));
  EXPECT_THAT(Of("memory", lines), ElementsAre("512 GiB"));
  EXPECT_THAT(Of("GPUs", lines),
              ElementsAre("4 x Tesla V100-SXM2-16GB, 6 NVLinks, 16 of 16 PCIe lanes, by NVML"));
  EXPECT_THAT(Of("InfiniBand", lines),
              ElementsAre("mlx5_0:1 ACTIVE, 100 Gbit/s, InfiniBand; mlx5_3:1 ACTIVE, 100 Gbit/s, "
                          "InfiniBand"));
  EXPECT_TRUE(Differences(lines).empty());
}

TEST(NodeLines, OfNodesThatDifferNameTheNodes) {
  MadeUpJob job(4);
  job.facts[0].kernel = "4.18.1";
  job.facts[1].gpus[2].nvlinks = 5;
  job.facts[3].details = {{"network ib1", "up"}};
  const std::vector<ReportLine> lines = NodeLines(job.facts);
  EXPECT_THAT(Of("kernel", lines), ElementsAre("4.18.0 (n[2-4])", "4.18.1 (n1)"));
  EXPECT_THAT(
      Of("GPUs", lines),
      ElementsAre("4 x Tesla V100-SXM2-16GB, 6 NVLinks, 16 of 16 PCIe lanes, by NVML "
                  "(n[1,3-4])",
                  "2 x Tesla V100-SXM2-16GB, 6 NVLinks, 16 of 16 PCIe lanes; "
                  "1 x Tesla V100-SXM2-16GB, 5 NVLinks, 16 of 16 PCIe lanes; "
                  "1 x Tesla V100-SXM2-16GB, 6 NVLinks, 16 of 16 PCIe lanes, by NVML (n2)"));
  EXPECT_THAT(Of("network ib1", lines), ElementsAre("not there (n[1-3])", "up (n4)"));
  EXPECT_THAT(Of("kernel", Differences(lines)),
              ElementsAre("differs between nodes: 4.18.0 (n[2-4]), 4.18.1 (n1)"));
  EXPECT_EQ(Differences(lines).size(), 3U);
}

TEST(NodeLines, DifferencesThatMeanNothingAreNotOdd) {
  MadeUpJob job(2);
  job.facts[0].memory_bytes -= 2LL << 30;
  job.facts[0].details = {{"CPUs of this job", "0-7"}, {"NUMA node 0", "CPUs 0-7, 1.0 GiB"}};
  job.facts[1].details = {{"CPUs of this job", "8-15"}, {"NUMA node 0", "CPUs 0-7, 1.1 GiB"}};
  const std::vector<ReportLine> lines = NodeLines(job.facts);
  EXPECT_EQ(Of("CPUs of this job", lines).size(), 2U);
  EXPECT_TRUE(Differences(lines).empty());
}

TEST(NodeLines, OfNodesWithoutAnAnswerAreLeftOut) {
  MadeUpJob job(3);
  job.facts[1] = NodeFacts();
  EXPECT_THAT(Of("kernel", NodeLines(job.facts)), ElementsAre("4.18.0"));
  EXPECT_TRUE(NodeLines({NodeFacts()}).empty());
}

TEST(OddVerdicts, AreAllButTheGoodOnes) {
  MadeUpJob job(2);
  EXPECT_TRUE(OddVerdicts(JudgeNodes(job.job, job.facts)).empty());
  job.facts[1].memlock_bytes = 65536;
  const std::vector<ReportLine> odd = OddVerdicts(JudgeNodes(job.job, job.facts));
  ASSERT_EQ(odd.size(), 1U);
  EXPECT_EQ(odd[0].name, "memlock");
  EXPECT_THAT(odd[0].text, ::testing::StartsWith("fail: InfiniBand needs locked memory"));
}

}  // namespace
}  // namespace launcher
