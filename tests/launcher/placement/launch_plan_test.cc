// SPDX-License-Identifier: Apache-2.0

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "launcher/base/error.h"
#include "launcher/placement/launch_plan_files.h"
#include "launcher/placement/node_binding.h"
#include "launcher/placement/planner.h"
#include "launcher/placement/segments.h"
#include "launcher/slurm/slurm_allocation.h"
#include "tests/launcher/placement/plan_fixtures.h"
#include "tests/launcher/slurm/slurm_environment_file.h"
#include "tests/support/directories.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_directory.h"

namespace launcher {
namespace {

TEST(GpuAffinity, SplitsTheCoresNearTheGpu) {
  const NodeTopology node = MakeNode({4, 4}, 1, {0, 0, 1, 1});
  EXPECT_THAT(SplitCores(node, {0, 1, 2, 3}, 0), ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3),
                                                             ElementsAre(4, 5), ElementsAre(6, 7)));
  EXPECT_THAT(SplitCores(node, {2, 0}, 0),
              ElementsAre(ElementsAre(4, 5, 6, 7), ElementsAre(0, 1, 2, 3)));
}

TEST(GpuAffinity, GivesTheFirstRanksTheOddCores) {
  const NodeTopology node = MakeNode({5, 4}, 1, {0, 0, 0, 1});
  EXPECT_THAT(
      SplitCores(node, {0, 1, 2, 3}, 0),
      ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4), ElementsAre(5, 6, 7, 8)));
}

TEST(GpuAffinity, GivesExactlyTheCoresAskedFor) {
  const NodeTopology node = MakeNode({4, 4}, 1, {0, 0, 1, 1});
  EXPECT_THAT(SplitCores(node, {0, 1, 2, 3}, 1),
              ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(4), ElementsAre(5)));
}

TEST(GpuAffinity, LeavesTheNumaNodeOfTheGpuWhenItIsTooSmall) {
  // Slurm gave cores of socket 0 only, or mostly.
  EXPECT_THAT(SplitCores(MakeNode({4}, 1, {0, 0, -1, -1}), {0, 1, 2, 3}, 0),
              ElementsAre(ElementsAre(2), ElementsAre(3), ElementsAre(0), ElementsAre(1)));
  EXPECT_THAT(SplitCores(MakeNode({6, 1}, 1, {0, 1, 1}), {0, 1, 2}, 0),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4, 5)));
}

TEST(GpuAffinity, KeepsRanksWithoutGpusInsideANumaNode) {
  EXPECT_THAT(SplitCores(MakeNode({2, 2}, 1, {}), {-1, -1}, 0),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
  EXPECT_THAT(SplitCores(MakeNode({3, 5}, 1, {}), {-1, -1, -1}, 0),
              ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3, 4, 5), ElementsAre(6, 7)));
}

TEST(GpuAffinity, SplitsAcrossNumaNodesWhereSharesDoNotFitInside) {
  EXPECT_THAT(SplitCores(MakeNode({2, 2}, 1, {}), {-1}, 0), ElementsAre(ElementsAre(0, 1, 2, 3)));
  EXPECT_THAT(SplitCores(MakeNode({3, 3}, 1, {}), {-1, -1, -1}, 0),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4, 5)));
}

TEST(GpuAffinity, DealsRanksOutByTheCoresThatTheyWouldHave) {
  EXPECT_THAT(SplitCores(MakeNode({4, 8}, 1, {}), {-1, -1, -1}, 1),
              ElementsAre(ElementsAre(0), ElementsAre(4), ElementsAre(5)));
  // An even share of the cores, which is two for a rank, would not fit inside.
  EXPECT_THAT(SplitCores(MakeNode({3, 3}, 1, {}), {-1, -1, -1}, 1),
              ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(3)));
}

TEST(GpuAffinity, GivesNoneWhereThereAreTooFew) {
  const NodeTopology laptop = MakeNode({2}, 1, {});
  EXPECT_THAT(SplitCores(laptop, {-1, -1, -1}, 0), ElementsAre(IsEmpty(), IsEmpty(), IsEmpty()));
  EXPECT_THAT(SplitCores(laptop, {-1, -1}, 2), ElementsAre(IsEmpty(), IsEmpty()));
  EXPECT_THAT(SplitCores(laptop, {}, 0), IsEmpty());
}

// Golden files under tests/fixtures/plans: run with DDLRUN_UPDATE_GOLDEN=1 to write them anew.

void ExpectGolden(const std::string& name, const std::string& text) {
  const std::string path = tests::SourceDirectory() + "/tests/fixtures/plans/" + name;
  if (std::getenv("DDLRUN_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  EXPECT_EQ(text, tests::TextOf(path)) << name;
}

Allocation ReadJob(const std::string& file) {
  return ReadSlurmAllocation(ReadBatchEnvironment(file)).value();
}

TEST(PlanFiles, MatchGoldenFilesOnTwoAc922) {
  const std::vector<NodeTopology> topologies = {ReadTopologyFixture("ac922_16c_4v100.xml")};
  const LaunchPlan plan = MakePlan(ReadJob("N2-gres-gpu-4.txt"), topologies, {});
  ExpectGolden("ac922-2x4.txt", PlanAsText(plan));
  ExpectGolden("ac922-2x4.json", PlanAsJson(plan));
  ExpectGolden("ac922-2x4.rankfile", RankfileText(plan, topologies));
  ExpectGolden("ac922-2x4.hostfile", HostfileText(plan));
}

// Each rank on the socket of its GPU.  Memory of GPUs, which is NUMA nodes of its own on POWER9
// (252 to 255) and Grace (2, 10, 18, 26), is no rank's.
TEST(PlanFiles, MatchGoldenFilesOfKnownNodes) {
  const struct {
    const char* node;
    Allocation job;
    const char* plan;
  } kRows[] = {
      {"ac922_16c_4v100.xml", MakeAllocation(1, 4, -1), "ac922-1x4.txt"},
      {"ac922_16c_4v100.xml", ReadJob("N4-gres-gpu-4-ntasks-per-node-4.txt"), "ac922-4x4.txt"},
      {"ac922_16c_4v100.xml", MakeAllocation(8, 4, -1), "ac922-8x4.txt"},
      {"ac922_16c_4v100_gpu_memory.xml", MakeAllocation(1, 4, -1), "ac922-1x4.txt"},
      {"gb200_72c_4gpu.xml", MakeAllocation(2, 4, -1), "gb200-2x4.txt"},
      {"gh200_72c_1gpu.xml", MakeAllocation(2, 1, -1), "gh200-2x1.txt"},
  };
  for (const auto& [node, job, plan] : kRows) {
    SCOPED_TRACE(node);
    ExpectGolden(plan, PlanAsText(MakePlan(job, {ReadTopologyFixture(node)}, {})));
  }
}

TEST(PlanFiles, MatchGoldenFilesOnUnevenNodes) {
  const std::vector<NodeTopology> topologies = {ReadTopologyFixture("ac922_22c_4v100.xml")};
  const LaunchPlan plan = MakePlan(ReadJob("N2-gpus-6-uneven.txt"), topologies, {});
  ExpectGolden("ac922-uneven-4-2.txt", PlanAsText(plan));
  ExpectGolden("ac922-uneven-4-2.rankfile", RankfileText(plan, topologies));
}

TEST(PlanFiles, MatchGoldenFilesOfAHeterogeneousJobOnX86) {
  const std::vector<NodeTopology> topologies = {ReadTopologyFixture("dgx1v.xml")};
  PlacementOptions options;
  options.ranks = 4;  // its tasks are fewer than its GPUs
  const LaunchPlan plan = MakePlan(ReadJob("hetjob-1x4gpu-2x2gpu.txt"), topologies, options);
  ExpectGolden("dgx1v-hetjob.txt", PlanAsText(plan));
}

// A plan without cores: ranks on hosts g28n14, g28n15 as Summit's ddlrun printed them.
LaunchPlan SummitPlan() {
  Allocation allocation = MakeAllocation(2, 6, -1);
  allocation.nodes[0].host = "g28n14";
  allocation.nodes[1].host = "g28n15";
  return MakePlan(allocation, {}, {.order = RankOrder::kCyclic});
}

TEST(PlanFiles, WriteDdlStringsAsIbmsDdlrunDid) {
  EXPECT_EQ(DdlHostList(SummitPlan()), "g28n14:0,2,4,6,8,10;g28n15:1,3,5,7,9,11");
  EXPECT_EQ(DdlOptions(SummitPlan()), "-mode p:6x2x1x1 ");
}

TEST(PlanFiles, WriteRacksAndModeIntoDdlOptions) {
  PlacementOptions options{.mode = "b", .nodes_per_rack = 18, .racks = 4, .aisles = 2};
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
  const std::vector<NodeTopology> topologies = {MakeNode({2, 2}, 1, {0, 1})};
  const LaunchPlan plan = MakePlan(MakeAllocation(1, 2, -1), topologies, {.bind = false});
  const std::string text = RankfileText(plan, topologies);
  EXPECT_THAT(text, AllOf(HasSubstr("rank 0=n1"), HasSubstr("0:0-1"), HasSubstr("1:0-1")));
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
  const LaunchPlan plan = MakePlan(allocation, {}, {});
  EXPECT_THAT(PlanAsText(plan), HasSubstr("rank  host  switch   local  gpu  memory  cores  cpus\n"
                                          "0     n1    pod1.s3  0      0    -       -      -\n"
                                          "1     n2    -        0      0    -       -      -\n"
                                          "2     n3    pod2.s4  0      0    -       -      -\n"));
  const auto nodes = nlohmann::json::parse(PlanAsJson(plan))["nodes"];
  EXPECT_EQ(nodes[0]["switch"], "pod1.s3");
  EXPECT_FALSE(nodes[1].contains("switch"));
}

TEST(PlanFiles, EndTheTextWithWarnings) {
  LaunchPlan plan = SummitPlan();
  plan.warnings = {"n1: look out"};
  EXPECT_THAT(PlanAsText(plan), EndsWith("\nn1: look out\n"));
  EXPECT_EQ(nlohmann::json::parse(PlanAsJson(plan))["warnings"][0], "n1: look out");
}

TEST(PlanFiles, WriteJsonWithNullForWhatARankDoesNotHave) {
  const auto json = nlohmann::json::parse(PlanAsJson(MakePlan(MakeAllocation(1, 0, -1), {}, {})));
  EXPECT_TRUE(json["ranks"][0]["gpu"].is_null());
  EXPECT_TRUE(json["ranks"][0]["numa_os_index"].is_null());
  EXPECT_EQ(json["format"], "ddlrun-plan-1");
  EXPECT_EQ(json["ddl_options"], "-mode p:1x1x1x1 ");
}

TEST(RankfilePlan, PutsEachRankOnItsHostInRankOrder) {
  const LaunchPlan plan =
      PlanFromRankfile("rank 0=n1 slot=0:0-3\nrank 1=n2 slot=0:0-3\nrank 2=n1 slot=1:0-3\n", "rf");
  ASSERT_EQ(plan.ranks.size(), 3U);
  EXPECT_EQ(plan.ranks[2].node, 0);
  EXPECT_EQ(plan.ranks[2].local_rank, 1);
  EXPECT_EQ(plan.nodes[1].host, "n2");
  EXPECT_THAT(plan.nodes[0].ranks, ElementsAre(0, 2));
  EXPECT_TRUE(plan.ranks[0].cpus.empty());  // mpirun binds by the file
}

TEST(RankfilePlan, RejectsABadOrEmptyFileByName) {
  for (const char* text : {"rank 0=n1 slot=x\n", "", "rank 1=n1 slot=0\n"}) {
    EXPECT_THAT(
        tests::Rejection<LaunchError>(EX_DATAERR, [&] { PlanFromRankfile(text, "my.rankfile"); }),
        HasSubstr("my.rankfile"));
  }
}

Allocation Job() {
  Allocation job{.origin_text = "SLURM_JOB_NODELIST=n[1-2]"};
  job.nodes.resize(2);
  job.nodes[0].host = "n1";
  job.nodes[1].host = "n2";
  return job;
}

TEST(RankfilePlan, CallsHostsAsSlurmDoes) {
  EXPECT_EQ(WithHostsOfJob("rank 0=n2.cluster slot=0:0-1\nrank 1=n1 slot=0:0\n", "rf", Job()),
            "rank 0=n2     slot=0:0-1\nrank 1=n1     slot=0:0\n");
  EXPECT_EQ(WithHostsOfJob("rank 0=n2 slot=0:0-1\n", "rf", Job()), "");
}

TEST(RankfilePlan, RejectsAHostOutsideTheJob) {
  const std::string rejection = tests::Rejection<LaunchError>(
      EX_CONFIG, [&] { WithHostsOfJob("rank 0=n9.cluster slot=0\n", "my.rankfile", Job()); });
  EXPECT_THAT(rejection, HasSubstr("my.rankfile names n9.cluster"));
  EXPECT_THAT(rejection, HasSubstr("#SBATCH --nodelist=n9"));
}

// Two ranks on each of n1, n2, ..., which are in these blocks.
LaunchPlan PlanOf(const std::vector<std::string>& blocks) {
  LaunchPlan plan;
  for (const std::string& block : blocks) {
    NodePlacement& node = plan.nodes.emplace_back();
    node.host = "n" + std::to_string(plan.nodes.size());
    node.network = block;
    const int first = 2 * static_cast<int>(plan.nodes.size()) - 2;
    node.ranks = {first, first + 1};
  }
  return plan;
}

TEST(Segments, AreWholeWhereTheirNodesShareABlock) {
  EXPECT_EQ(TornSegment(PlanOf({"b1", "b1", "b2", "b2"}), 2), "");
  EXPECT_EQ(TornSegment(PlanOf({"b1", "b2", "b1"}), 1), "");
  EXPECT_EQ(TornSegment(PlanOf({"b1", "b1", "b1", "b1", "b2"}), 2), "");
  EXPECT_EQ(TornSegment(PlanOf({"", "b1"}), 2), "");  // not known
  EXPECT_EQ(TornSegment(PlanOf({}), 2), "");
  EXPECT_EQ(TornSegment(PlanOf({"b1", "b2"}), 0), "");
}

TEST(Segments, AreTornOverBlocks) {
  EXPECT_EQ(TornSegment(PlanOf({"b1", "b1", "b2", "b1", "b2", "b3"}), 2),
            "the segment of ranks 4 to 7 is on several blocks: b2 (n3) and b1 (n4)");
  EXPECT_EQ(TornSegment(PlanOf({"b1", "b2", "b1", "b3"}), 4),
            "the segment of ranks 0 to 7 is on several blocks: b1 (n1, n3), b2 (n2) and b3 (n4)");
  // The last segment has what is left.
  EXPECT_EQ(TornSegment(PlanOf({"b1", "b1", "b1", "b1", "b2"}), 3),
            "the segment of ranks 6 to 9 is on several blocks: b1 (n4) and b2 (n5)");
}

}  // namespace
}  // namespace launcher
