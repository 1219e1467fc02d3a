// SPDX-License-Identifier: Apache-2.0
//
// Golden files under tests/fixtures/plans: run with DDLRUN_UPDATE_GOLDEN=1 to write them anew.
#include "launcher/plan/plan_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "launcher/base/error.h"
#include "launcher/plan/planner.h"
#include "launcher/slurm/slurm_allocation.h"
#include "tests/launcher/plan/plan_fixtures.h"
#include "tests/launcher/slurm/slurm_environment_file.h"
#include "tests/support/folders.h"

namespace launcher {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string ReadWhole(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void ExpectGolden(const std::string& name, const std::string& text) {
  const std::string path = tests::SourceFolder() + "/tests/fixtures/plans/" + name;
  if (std::getenv("DDLRUN_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  EXPECT_EQ(text, ReadWhole(path)) << name;
}

Allocation ReadJob(const std::string& file) {
  return ReadSlurmAllocation(ReadBatchEnvironment(file)).value();
}

TEST(PlanFiles, MatchGoldenFilesOnTwoAc922) {
  const std::vector<NodeTopology> topologies = {ReadTopologyFixture("ac922_16c_4v100.xml")};
  const Plan plan = MakePlan(ReadJob("N2-gres-gpu-4.txt"), topologies, {});
  ExpectGolden("ac922-2x4.txt", PlanAsText(plan));
  ExpectGolden("ac922-2x4.json", PlanAsJson(plan));
  ExpectGolden("ac922-2x4.rankfile", RankfileText(plan, topologies));
  ExpectGolden("ac922-2x4.hostfile", HostfileText(plan));
}

// Two V100 on each socket; memory of GPUs, which POWER9 shows as NUMA nodes 252 to 255, is no
// rank's.
TEST(PlanFiles, MatchGoldenFilesOfAc922ForAnyNumberOfNodes) {
  for (const char* node : {"ac922_16c_4v100.xml", "ac922_16c_4v100_gpu_memory.xml"}) {
    SCOPED_TRACE(node);
    const std::vector<NodeTopology> topologies = {ReadTopologyFixture(node)};
    const auto text = [&](const Allocation& job) {
      return PlanAsText(MakePlan(job, topologies, {}));
    };
    ExpectGolden("ac922-1x4.txt", text(MakeAllocation(1, 4, -1)));
    ExpectGolden("ac922-4x4.txt", text(ReadJob("N4-gres-gpu-4-ntasks-per-node-4.txt")));
    ExpectGolden("ac922-8x4.txt", text(MakeAllocation(8, 4, -1)));
  }
}

TEST(PlanFiles, MatchGoldenFilesOnUnevenNodes) {
  const std::vector<NodeTopology> topologies = {ReadTopologyFixture("ac922_22c_4v100.xml")};
  const Plan plan = MakePlan(ReadJob("N2-gpus-6-uneven.txt"), topologies, {});
  ExpectGolden("ac922-uneven-4-2.txt", PlanAsText(plan));
  ExpectGolden("ac922-uneven-4-2.rankfile", RankfileText(plan, topologies));
}

TEST(PlanFiles, MatchGoldenFilesOfAHeterogeneousJobOnX86) {
  const std::vector<NodeTopology> topologies = {ReadTopologyFixture("dgx1v.xml")};
  PlanOptions options;
  options.ranks = 4;  // its tasks are fewer than its GPUs
  const Plan plan = MakePlan(ReadJob("hetjob-1x4gpu-2x2gpu.txt"), topologies, options);
  ExpectGolden("dgx1v-hetjob.txt", PlanAsText(plan));
}

// A plan without cores: ranks on hosts g28n14, g28n15 as Summit's ddlrun printed them.
Plan SummitPlan() {
  Allocation allocation = MakeAllocation(2, 6, -1);
  allocation.nodes[0].host = "g28n14";
  allocation.nodes[1].host = "g28n15";
  PlanOptions options;
  options.order = RankOrder::kCyclic;
  return MakePlan(allocation, {}, options);
}

TEST(PlanFiles, WriteDdlStringsAsIbmsDdlrunDid) {
  EXPECT_EQ(DdlHostList(SummitPlan()), "g28n14:0,2,4,6,8,10;g28n15:1,3,5,7,9,11");
  EXPECT_EQ(DdlOptions(SummitPlan()), "-mode p:6x2x1x1 ");
}

TEST(PlanFiles, WriteRacksAndModeIntoDdlOptions) {
  PlanOptions options;
  options.racks = 4;
  options.aisles = 2;
  options.nodes_per_rack = 18;
  options.mode = "b";
  EXPECT_EQ(DdlOptions(MakePlan(MakeAllocation(144, 6, -1), {}, options)), "-mode b:6x18x4x2 ");
}

TEST(PlanFiles, WriteUnevenNodesAsOneRing) {
  Allocation allocation = MakeAllocation(2, 4, -1);
  allocation.nodes[1].gpus = 2;
  EXPECT_EQ(DdlOptions(MakePlan(allocation, {}, {})), "-mode r:6x1x1x1 ");
}

TEST(PlanFiles, WriteAHostfileWithTheRanksOfEachHost) {
  EXPECT_EQ(HostfileText(SummitPlan()), "g28n14 slots=6\ng28n15 slots=6\n");
}

TEST(PlanFiles, GiveRanksThatAreNotBoundAllCoresOfTheirNode) {
  PlanOptions options;
  options.bind = false;
  const std::vector<NodeTopology> topologies = {MakeNode({2, 2}, 1, {0, 1})};
  const Plan plan = MakePlan(MakeAllocation(1, 2, -1), topologies, options);
  const std::string text = RankfileText(plan, topologies);
  EXPECT_THAT(text, HasSubstr("rank 0=n1"));
  EXPECT_THAT(text, HasSubstr("0:0-1"));
  EXPECT_THAT(text, HasSubstr("1:0-1"));
}

TEST(PlanFiles, NameTheHostAloneInARankfileWhereCoresAreNotKnown) {
  EXPECT_EQ(RankfileText(MakePlan(MakeAllocation(2, 1, -1), {}, {}), {}),
            "rank 0=n1     slot=0\nrank 1=n2     slot=0\n");
}

TEST(PlanFiles, ShowTheSwitchOfEachNodeWhereItIsKnown) {
  Allocation allocation = MakeAllocation(3, 1, -1);
  EXPECT_THAT(PlanAsText(MakePlan(allocation, {}, {})), Not(HasSubstr("switch")));
  EXPECT_FALSE(nlohmann::json::parse(PlanAsJson(MakePlan(allocation, {}, {})))["nodes"][0].contains(
      "switch"));
  allocation.network_unit = "switch";
  allocation.nodes[0].network_path = {"pod1", "s3"};
  allocation.nodes[2].network_path = {"pod2", "s4"};
  const Plan plan = MakePlan(allocation, {}, {});
  EXPECT_THAT(PlanAsText(plan), HasSubstr("rank  host  switch   local  gpu  memory  cores  cpus\n"
                                          "0     n1    pod1.s3  0      0    -       -      -\n"
                                          "1     n2    -        0      0    -       -      -\n"
                                          "2     n3    pod2.s4  0      0    -       -      -\n"));
  const auto nodes = nlohmann::json::parse(PlanAsJson(plan))["nodes"];
  EXPECT_EQ(nodes[0]["switch"], "pod1.s3");
  EXPECT_FALSE(nodes[1].contains("switch"));
}

TEST(PlanFiles, EndTheTextWithWarnings) {
  Plan plan = SummitPlan();
  plan.warnings = {"n1: look out"};
  EXPECT_THAT(PlanAsText(plan), testing::EndsWith("\nn1: look out\n"));
  EXPECT_EQ(nlohmann::json::parse(PlanAsJson(plan))["warnings"][0], "n1: look out");
}

TEST(PlanFiles, WriteJsonWithNullForWhatARankDoesNotHave) {
  const auto json = nlohmann::json::parse(PlanAsJson(MakePlan(MakeAllocation(1, 0, -1), {}, {})));
  EXPECT_TRUE(json["ranks"][0]["gpu"].is_null());
  EXPECT_TRUE(json["ranks"][0]["numa_os_index"].is_null());
  EXPECT_EQ(json["format"], "ddlrun-plan-1");
  EXPECT_EQ(json["ddl_options"], "-mode p:1x1x1x1 ");
}

}  // namespace
}  // namespace launcher
