// SPDX-License-Identifier: Apache-2.0

#include "launcher/pipeline/planned_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/folders.h"

namespace launcher {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Four nodes with two GPUs and two tasks each.
Environment FourNodes() {
  return {{"SLURM_JOB_ID", "7"},
          {"SLURM_JOB_NODELIST", "n[1-4]"},
          {"SLURM_JOB_NUM_NODES", "4"},
          {"SLURM_GPUS_PER_NODE", "2"},
          {"SLURM_NTASKS", "8"},
          {"SLURM_TASKS_PER_NODE", "2(x4)"},
          {"SLURM_JOB_CPUS_PER_NODE", "64(x4)"}};
}

PlannedJob PlanWithout(const std::vector<std::string>& lost_nodes,
                       const std::vector<std::string>& arguments, const SiteConfig& site = {}) {
  std::vector<std::string> all = {
      "--max-restarts=3",
      "--topology=" + tests::SourceFolder() + "/tests/fixtures/hwloc/ac922_16c_4v100.xml"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  const Options options = ParseOptions(all);
  const Settings settings = MergeSettings(options, site, FourNodes());
  return PlanJob(options, settings, FourNodes(), lost_nodes);
}

std::vector<std::string> HostsOf(const Plan& plan) {
  std::vector<std::string> hosts;
  for (const NodePlan& node : plan.nodes) hosts.push_back(node.host);
  return hosts;
}

TEST(PlanJob, RunsOnTheNodesThatAreLeft) {
  const PlannedJob first = PlanWithout({}, {"--min-nodes=2"});
  EXPECT_EQ(first.plan.ranks.size(), 8);
  EXPECT_EQ(first.dispensable_nodes, 2);
  EXPECT_EQ(first.min_nodes, 2);
  EXPECT_THAT(first.plan.warnings, Not(Contains(HasSubstr("are left"))));

  const PlannedJob second = PlanWithout({"n2"}, {"--min-nodes=2"});
  EXPECT_THAT(HostsOf(second.plan), ElementsAre("n1", "n3", "n4"));
  EXPECT_EQ(second.plan.ranks.size(), 6);
  EXPECT_EQ(second.dispensable_nodes, 2);
  EXPECT_TRUE(second.has_lost_nodes);
  EXPECT_THAT(
      second.plan.warnings,
      Contains("[WARN DDL-21-11] 3 of the 4 nodes of this job are left, without n2: 6 ranks"));

  const PlannedJob third = PlanWithout({"n2", "n4"}, {"--min-nodes=2"});
  EXPECT_THAT(HostsOf(third.plan), ElementsAre("n1", "n3"));
  EXPECT_THAT(
      third.plan.warnings,
      Contains("[WARN DDL-21-11] 2 of the 4 nodes of this job are left, without n2, n4: 4 ranks"));
}

TEST(PlanJob, TakesSpareNodesBeforeItRunsOnFewer) {
  const std::vector<std::string> arguments = {"--spare-nodes=1", "--min-nodes=2"};
  EXPECT_EQ(PlanWithout({}, arguments).plan.ranks.size(), 6);
  EXPECT_EQ(PlanWithout({}, arguments).dispensable_nodes, 2);
  const PlannedJob second = PlanWithout({"n2"}, arguments);
  EXPECT_THAT(HostsOf(second.plan), ElementsAre("n1", "n3", "n4"));
  EXPECT_THAT(second.plan.warnings, Not(Contains(HasSubstr("are left"))));
  const PlannedJob third = PlanWithout({"n2", "n1"}, arguments);
  EXPECT_THAT(HostsOf(third.plan), ElementsAre("n3", "n4"));
  EXPECT_THAT(third.plan.warnings, Contains(HasSubstr("2 of the 4 nodes")));
}

TEST(PlanJob, OnlySpareNodesAreDispensableWithoutALeastNumber) {
  EXPECT_EQ(PlanWithout({}, {}).dispensable_nodes, 0);
  EXPECT_EQ(PlanWithout({}, {"--spare-nodes=1"}).dispensable_nodes, 1);
  EXPECT_EQ(PlanWithout({}, {"--spare-nodes=1"}).min_nodes, 0);
  // All nodes are needed.
  EXPECT_EQ(PlanWithout({}, {"--min-nodes=4"}).dispensable_nodes, 0);
}

TEST(PlanJob, TheSitesNumberCountsWhereTheJobHasSoManyNodes) {
  const auto site = [](const std::string& nodes) {
    return ParseSiteConfig("min_nodes: " + nodes + "\n", "site.yaml");
  };
  EXPECT_EQ(PlanWithout({}, {}, site("3")).dispensable_nodes, 1);
  EXPECT_EQ(PlanWithout({}, {}, site("4")).min_nodes, 4);
  EXPECT_EQ(PlanWithout({}, {}, site("5")).min_nodes, 0);
  EXPECT_EQ(PlanWithout({}, {}, site("5")).dispensable_nodes, 0);
  EXPECT_EQ(PlanWithout({}, {"--spare-nodes=1"}, site("4")).dispensable_nodes, 1);
}

}  // namespace
}  // namespace launcher
