// SPDX-License-Identifier: Apache-2.0

#include "launcher/placement/planner.h"

#include "launcher/base/error.h"
#include "launcher/placement/launch_plan_files.h"
#include "launcher/slurm/slurm_allocation.h"
#include "rankfile/ddl.h"
#include "tests/launcher/placement/plan_check.h"
#include "tests/launcher/placement/plan_fixtures.h"
#include "tests/launcher/slurm/slurm_environment_file.h"
#include "tests/support/refusal.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

NodeTopology Laptop() { return MakeNode({2}, 1, {}); }

// The ranks on each node of the plan.
std::vector<int> Counts(const LaunchPlan& plan) {
  std::vector<int> counts;
  for (const NodePlacement& node : plan.nodes)
    counts.push_back(static_cast<int>(node.ranks.size()));
  return counts;
}

LaunchPlan MakeCheckedPlan(const Allocation& allocation,
                           const std::vector<NodeTopology>& topologies,
                           const PlacementOptions& options = {}) {
  LaunchPlan plan = MakePlan(allocation, topologies, options);
  EXPECT_EQ(FindPlanError(plan, options.oversubscribe), "");
  return plan;
}

std::string Rejection(int exit_code, const Allocation& allocation,
                      const std::vector<NodeTopology>& topologies,
                      const PlacementOptions& options) {
  return tests::Rejection<LaunchError>(exit_code,
                                       [&] { MakePlan(allocation, topologies, options); });
}

TEST(Planner, StartsOneRankPerGrantedGpu) {
  const LaunchPlan plan = MakeCheckedPlan(MakeAllocation(4, 4, kUnlogged), {Ac922()});
  EXPECT_THAT(Counts(plan), ElementsAre(4, 4, 4, 4));
  EXPECT_THAT(plan.warnings, IsEmpty());
  const RankPlacement& last = plan.ranks[15];
  EXPECT_EQ(last.node, 3);
  EXPECT_EQ(last.local_rank, 3);
  EXPECT_EQ(last.gpu, 3);
  EXPECT_EQ(last.numa_os_index, 8);
  EXPECT_EQ(last.cores.front(), 24);
  EXPECT_EQ(last.cores.size(), 8u);
  EXPECT_EQ(last.cpus.size(), 32u);
}

TEST(Planner, TakesAllGpusOfANodeWhereNobodySaysHowMany) {
  EXPECT_THAT(Counts(MakeCheckedPlan(MakeAllocation(2, kUnlogged, kUnlogged),
                                     {Ac922(), MakeNode({4}, 1, {0})})),
              ElementsAre(4, 1));
}

TEST(Planner, TakesOtherNodesToBeLikeTheFirst) {
  Allocation allocation = MakeAllocation(3, kUnlogged, kUnlogged);
  allocation.nodes[0].gpus = 2;  // SLURM_GPUS_ON_NODE of the batch host
  allocation.nodes[0].gpu_indices = {2, 3};
  const LaunchPlan plan = MakeCheckedPlan(allocation, {Ac922()});
  EXPECT_THAT(Counts(plan), ElementsAre(2, 2, 2));
  EXPECT_EQ(plan.ranks[0].gpu, 2);
  EXPECT_EQ(plan.ranks[0].numa_os_index, 8);
}

TEST(Planner, ExpectsNothingOfAnotherComponent) {
  Allocation allocation = MakeAllocation(2, kUnlogged, kUnlogged);
  allocation.nodes[0].gpus = 4;
  allocation.nodes[1].component = 1;
  EXPECT_THAT(Rejection(EX_CONFIG, allocation, {Ac922()}, {}),
              HasSubstr("n2: nobody says how many GPUs"));
  allocation.nodes[0].slots = 4;
  allocation.nodes[1].slots = 2;
  const LaunchPlan plan = MakeCheckedPlan(allocation, {Ac922()});
  EXPECT_EQ(plan.ranks[5].gpu, 1);
  EXPECT_THAT(plan.warnings, IsEmpty());
}

TEST(Planner, LeavesOutComponentsThatHaveNoGpusBesideOneThatHas) {
  const std::string warning =
      "[WARN DDL-21-12] n[2-3]: no ranks: this component of the heterogeneous job has asked for no "
      "GPUs; -H HOST:N,... starts ranks there too";
  const auto allocated = [](int first, int others) {
    Allocation allocation = MakeAllocation(3, 0, kUnlogged);
    allocation.nodes[0].gpus = first;
    for (const std::size_t i : {1, 2}) {
      allocation.nodes[i].gpus = others;
      allocation.nodes[i].component = 1;
    }
    return allocation;
  };
  Allocation allocation = allocated(2, 0);
  const LaunchPlan plan = MakeCheckedPlan(allocation, {Ac922()});
  EXPECT_THAT(Counts(plan), ElementsAre(2));
  EXPECT_THAT(plan.warnings, ElementsAre(warning));
  EXPECT_THAT(Counts(MakeCheckedPlan(allocated(0, 2), {Ac922()})), ElementsAre(2, 2));
  EXPECT_THAT(Counts(MakeCheckedPlan(allocated(2, 1), {Ac922()})), ElementsAre(2, 1, 1));
  const LaunchPlan without = MakeCheckedPlan(allocated(0, 0), {Laptop()});
  EXPECT_THAT(Counts(without), ElementsAre(1, 1, 1));
  EXPECT_THAT(without.warnings, IsEmpty());
  allocation.nodes[2].slots = 3;  // -H n3:3, or tasks that the component has asked for
  EXPECT_THAT(Counts(MakeCheckedPlan(allocation, {Ac922()})), ElementsAre(2, 3));
  allocation.nodes[2].slots.reset();
  allocation.nodes[1].component = allocation.nodes[2].component = 0;  // of the same component
  EXPECT_THAT(Counts(MakeCheckedPlan(allocation, {Laptop()})), ElementsAre(2, 1, 1));
}

TEST(Planner, TakesSlotsThatMayBeCoresOnlyWhereThereAreNoGpus) {
  Allocation allocation = MakeAllocation(2, kUnlogged, 40);
  allocation.slots_may_be_cores = true;
  EXPECT_THAT(Counts(MakeCheckedPlan(allocation, {Ac922()})), ElementsAre(4, 4));
  EXPECT_THAT(Counts(MakeCheckedPlan(allocation, {Ac922()}, {.ranks_per_node = 2})),
              ElementsAre(2, 2));
  EXPECT_THAT(Counts(MakeCheckedPlan(allocation, {Laptop()})), ElementsAre(40, 40));
}

TEST(Planner, HonoursUnevenNodes) {
  Allocation allocation = MakeAllocation(2, 4, kUnlogged);
  allocation.nodes[1].gpus = 2;
  EXPECT_THAT(Counts(MakeCheckedPlan(allocation, {Ac922()})), ElementsAre(4, 2));
}

TEST(Planner, StartsOneRankWhereThereIsNoGpu) {
  EXPECT_THAT(Counts(MakeCheckedPlan(MakeAllocation(2, kUnlogged, kUnlogged), {Laptop()})),
              ElementsAre(1, 1));
}

TEST(Planner, StartsAsManyRanksAsSlots) {
  EXPECT_THAT(Counts(MakeCheckedPlan(MakeAllocation(2, 3, 3), {Ac922()})), ElementsAre(3, 3));
  EXPECT_THAT(Counts(MakeCheckedPlan(MakeAllocation(2, 4, 3), {Ac922()}, {.ranks_per_node = 2})),
              ElementsAre(2, 2));
}

TEST(Planner, RejectsTasksThatLeaveGpusIdle) {
  Allocation allocation = MakeAllocation(2, 4, 1);
  allocation.ranks = 2;
  EXPECT_THAT(Rejection(EX_CONFIG, allocation, {Ac922()}, {}),
              AllOf(HasSubstr("n1: 1 rank for 4 GPUs"), HasSubstr("#SBATCH --ntasks-per-node=4"),
                    HasSubstr("ddlrun -n 2"), HasSubstr("--accelerators 1")));
}

TEST(Planner, LeavesGpusIdleWhereToldSo) {
  Allocation allocation = MakeAllocation(2, 4, 1);
  allocation.ranks = 2;
  for (const PlacementOptions& options :
       {PlacementOptions{.ranks = 2}, PlacementOptions{.gpus_per_node = 1}}) {
    EXPECT_THAT(Counts(MakeCheckedPlan(allocation, {Ac922()}, options)), ElementsAre(1, 1));
  }
  allocation.origin = Allocation::Origin::kHostList;  // -H n1:1,n2:1
  EXPECT_THAT(Counts(MakeCheckedPlan(allocation, {Ac922()})), ElementsAre(1, 1));
}

TEST(Planner, RejectsAJobThatForgotItsGpus) {
  const auto complaint = AllOf(HasSubstr("n1 has 4 GPUs"), HasSubstr("granted none"),
                               HasSubstr("#SBATCH --gres=gpu:4"), HasSubstr("--accelerators 0"));
  Allocation allocation = MakeAllocation(1, 0, kUnlogged);
  EXPECT_THAT(Rejection(EX_CONFIG, allocation, {Ac922()}, {}), complaint);
  EXPECT_THAT(Counts(MakeCheckedPlan(allocation, {Laptop()})), ElementsAre(1));
  allocation.gpus_per_node_unasked = 4;
  EXPECT_THAT(Rejection(EX_CONFIG, allocation, {Laptop()}, {}), complaint);
}

TEST(Planner, SaysWhenTasksRunBesideGpusThatWereNotAskedFor) {
  const LaunchPlan plan = MakeCheckedPlan(MakeAllocation(1, 0, 3), {Ac922()});
  EXPECT_THAT(Counts(plan), ElementsAre(3));
  EXPECT_EQ(plan.ranks[0].gpu, -1);
  EXPECT_THAT(plan.warnings,
              ElementsAre(AllOf(HasSubstr("n1: has 4 GPUs"), HasSubstr("#SBATCH --gres=gpu:4"))));
  EXPECT_THAT(
      MakeCheckedPlan(MakeAllocation(1, 0, kUnlogged), {Ac922()}, {.gpus_per_node = 0}).warnings,
      IsEmpty());
}

TEST(Planner, PlansGpusThatHwlocCannotSee) {
  const LaunchPlan plan = MakeCheckedPlan(MakeAllocation(1, 2, kUnlogged), {Laptop()});
  EXPECT_EQ(plan.ranks[1].gpu, 1);
  EXPECT_THAT(plan.ranks[1].cores, ElementsAre(1));
  EXPECT_THAT(plan.warnings, ElementsAre(HasSubstr("hwloc sees 0")));
}

TEST(Planner, SaysAWarningOnceForAllNodesItIsTrueOf) {
  Allocation allocation = MakeAllocation(3, 2, kUnlogged);
  allocation.nodes[1].gpus = 1;
  EXPECT_THAT(MakeCheckedPlan(allocation, {Laptop()}).warnings,
              ElementsAre(HasSubstr("n[1,3]: 2 GPUs granted"), HasSubstr("n2: 1 GPU granted")));
}

TEST(Planner, SaysNothingOfGpusWhereThereAreNone) {
  EXPECT_THAT(MakeCheckedPlan(MakeAllocation(1, 0, 2), {Laptop()}).warnings, IsEmpty());
}

TEST(Planner, TakesTheGpusThatAreNamedOnlyIfTheyAreThere) {
  Allocation allocation = MakeAllocation(1, 1, kUnlogged);
  allocation.nodes[0].gpu_indices = {3};
  EXPECT_EQ(MakeCheckedPlan(allocation, {Ac922()}).ranks[0].gpu, 3);
  allocation.nodes[0].gpu_indices = {4};
  EXPECT_EQ(MakeCheckedPlan(allocation, {Ac922()}).ranks[0].gpu, 0);
}

TEST(Planner, GivesNoGpuWhereNobodySaysThatThereIsOne) {
  const LaunchPlan plan = MakeCheckedPlan(MakeAllocation(2, kUnlogged, 2), {});
  EXPECT_THAT(Counts(plan), ElementsAre(2, 2));
  EXPECT_EQ(plan.ranks[0].gpu, -1);
}

TEST(Planner, FillsNodesInOrderWhenTheTotalIsGiven) {
  EXPECT_THAT(Counts(MakeCheckedPlan(MakeAllocation(3, 4, kUnlogged), {Ac922()}, {.ranks = 5})),
              ElementsAre(4, 1));
  EXPECT_THAT(
      Counts(MakeCheckedPlan(MakeAllocation(1, kUnlogged, kUnlogged), {Laptop()}, {.ranks = 2})),
      ElementsAre(2));
}

TEST(Planner, RejectsMoreRanksThanThereIsRoomFor) {
  PlacementOptions options{.ranks = 9};
  EXPECT_THAT(Rejection(EX_CONFIG, MakeAllocation(2, 4, kUnlogged), {Ac922()}, options),
              AllOf(HasSubstr("9 ranks asked for"), HasSubstr("room for 8 on 2 nodes"),
                    HasSubstr("SLURM_JOB_NODELIST=n[1-2]"), HasSubstr("--oversubscribe")));
  EXPECT_THAT(Rejection(EX_CONFIG, MakeAllocation(2, kUnlogged, 4), {Ac922()}, options),
              HasSubstr("room for 8"));
  Allocation job = MakeAllocation(2, 4, kUnlogged);
  job.job_id = "7";
  EXPECT_THAT(Rejection(EX_CONFIG, job, {Ac922()}, options),
              HasSubstr("write #SBATCH --nodes=3 or --gres=gpu:5, ask for less with -n 8"));
  job = MakeAllocation(2, 4, 2);
  job.job_id = "7";
  EXPECT_THAT(Rejection(EX_CONFIG, job, {Ac922()}, options),
              HasSubstr("write #SBATCH --nodes=5 or --ntasks-per-node=5, "));
  options.ranks = 4;
  EXPECT_THAT(Rejection(EX_CONFIG, MakeAllocation(1, kUnlogged, kUnlogged), {Laptop()}, options),
              HasSubstr("room for 2"));
  options.ranks = 2;
  options.cpus_per_rank = 2;
  EXPECT_THAT(Rejection(EX_CONFIG, MakeAllocation(1, kUnlogged, kUnlogged), {Laptop()}, options),
              HasSubstr("room for 1"));
}

TEST(Planner, RejectsMoreRanksThanGpus) {
  EXPECT_THAT(Rejection(EX_CONFIG, MakeAllocation(1, 2, 4), {Ac922()}, {}),
              AllOf(HasSubstr("n1: 4 ranks for 2 GPUs"), HasSubstr("--gres=gpu:4"),
                    HasSubstr("--ntasks-per-node=2"), HasSubstr("--accelerators 0")));
  const LaunchPlan plan = MakeCheckedPlan(MakeAllocation(1, 2, 4), {Ac922()}, {.gpus_per_node = 0});
  EXPECT_EQ(plan.ranks[3].gpu, -1);
  EXPECT_THAT(plan.warnings, IsEmpty());
}

TEST(Planner, RejectsMoreGpusThanGranted) {
  EXPECT_THAT(
      Rejection(EX_CONFIG, MakeAllocation(1, 2, kUnlogged), {Ac922()}, {.gpus_per_node = 4}),
      AllOf(HasSubstr("n1: 4 GPUs per node asked for"), HasSubstr("granted 2"),
            HasSubstr("--gres=gpu:4")));
}

TEST(Planner, OversubscribesALaptopUnbound) {
  const LaunchPlan plan = MakeCheckedPlan(MakeAllocation(1, kUnlogged, kUnlogged), {Laptop()},
                                          {.ranks = 4, .oversubscribe = true});
  EXPECT_THAT(Counts(plan), ElementsAre(4));
  EXPECT_THAT(plan.ranks[3].cores, IsEmpty());
  EXPECT_EQ(plan.ranks[3].numa_os_index, -1);
  EXPECT_THAT(plan.warnings,
              ElementsAre(AllOf(HasSubstr("4 ranks need 1 core each"), HasSubstr("not bound"))));
}

TEST(Planner, SharesGpusInTurnWhenOversubscribed) {
  const LaunchPlan plan =
      MakeCheckedPlan(MakeAllocation(1, 2, 4), {Ac922()}, {.oversubscribe = true});
  EXPECT_EQ(plan.ranks[0].gpu, 0);
  EXPECT_EQ(plan.ranks[1].gpu, 1);
  EXPECT_EQ(plan.ranks[2].gpu, 0);
  EXPECT_THAT(plan.warnings, ElementsAre(HasSubstr("4 ranks share 2 GPUs")));
}

TEST(Planner, DealsOutWhatIsTooManyEvenly) {
  PlacementOptions options{.ranks = 7, .oversubscribe = true};
  EXPECT_THAT(Counts(MakeCheckedPlan(MakeAllocation(2, kUnlogged, 2), {Laptop()}, options)),
              ElementsAre(4, 3));
  options.ranks = 8;
  EXPECT_THAT(Counts(MakeCheckedPlan(MakeAllocation(3, kUnlogged, 2), {Laptop()}, options)),
              ElementsAre(3, 3, 2));
}

TEST(Planner, GivesWholeCoresForCpusPerRank) {
  PlacementOptions options;
  options.cpus_per_rank = 6;  // of SMT4: two cores
  const LaunchPlan plan = MakeCheckedPlan(MakeAllocation(1, 4, kUnlogged), {Ac922()}, options);
  EXPECT_THAT(plan.ranks[3].cores, ElementsAre(18, 19));
  EXPECT_EQ(plan.ranks[3].cpus.size(), 8u);

  Allocation allocation = MakeAllocation(1, 4, kUnlogged);
  allocation.cpus_per_rank = 4;
  EXPECT_THAT(MakeCheckedPlan(allocation, {Ac922()}).ranks[1].cores, ElementsAre(1));
  allocation.cpus_are_cores = true;
  EXPECT_THAT(MakeCheckedPlan(allocation, {Ac922()}).ranks[1].cores, ElementsAre(4, 5, 6, 7));
  options.cpus_per_rank = 4;  // of ddlrun itself: hardware threads
  EXPECT_THAT(MakeCheckedPlan(allocation, {Ac922()}, options).ranks[1].cores, ElementsAre(1));
}

TEST(Planner, RejectsMoreCpusPerRankThanThereAre) {
  EXPECT_THAT(
      Rejection(EX_CONFIG, MakeAllocation(1, 4, kUnlogged), {Ac922()}, {.cpus_per_rank = 40}),
      HasSubstr("n1: 4 ranks need 10 cores each, but only 32 may be used"));
  // As Slurm has it, ranks still start.
  Allocation allocation = MakeAllocation(1, 4, kUnlogged);
  allocation.cpus_per_rank = 40;
  const LaunchPlan plan = MakeCheckedPlan(allocation, {Ac922()});
  EXPECT_THAT(plan.ranks[0].cores, IsEmpty());
  EXPECT_THAT(plan.warnings, ElementsAre(HasSubstr("not bound")));
}

TEST(Planner, BindsNothingWhenToldSo) {
  const LaunchPlan plan =
      MakeCheckedPlan(MakeAllocation(1, 4, kUnlogged), {Ac922()}, {.bind = false});
  EXPECT_THAT(plan.ranks[0].cores, IsEmpty());
  EXPECT_EQ(plan.ranks[2].gpu, 2);
  EXPECT_THAT(plan.warnings, IsEmpty());
}

TEST(Planner, RanksRoundRobinOverHostsWhenCyclic) {
  const PlacementOptions options{.order = RankOrder::kCyclic};
  const LaunchPlan plan = MakeCheckedPlan(MakeAllocation(2, 6, kUnlogged),
                                          {MakeNode({6, 6}, 1, {0, 0, 0, 1, 1, 1})}, options);
  EXPECT_THAT(plan.nodes[0].ranks, ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(plan.nodes[1].ranks, ElementsAre(1, 3, 5, 7, 9, 11));
  EXPECT_EQ(plan.ranks[7].gpu, 3);

  Allocation uneven = MakeAllocation(2, 4, kUnlogged);
  uneven.nodes[0].gpus = 1;
  EXPECT_THAT(MakeCheckedPlan(uneven, {Ac922()}, options).nodes[1].ranks, ElementsAre(1, 2, 3, 4));
}

TEST(Planner, NeedsSomebodyToSayHowManyGpusWhenNodesAreNotKnown) {
  // salloc -N2 --gres=gpu:2 on a login node.
  EXPECT_THAT(Rejection(EX_CONFIG, MakeAllocation(2, kUnlogged, kUnlogged), {}, {}),
              AllOf(HasSubstr("n1: nobody says how many GPUs"), HasSubstr("--gpus-per-node=N"),
                    HasSubstr("--accelerators N")));
  const LaunchPlan plan =
      MakeCheckedPlan(MakeAllocation(2, kUnlogged, kUnlogged), {}, {.gpus_per_node = 2});
  EXPECT_THAT(Counts(plan), ElementsAre(2, 2));
  EXPECT_THAT(plan.ranks[3].cores, IsEmpty());
  EXPECT_THAT(plan.warnings, IsEmpty());
}

TEST(Planner, ChecksTheProductOfRacks) {
  PlacementOptions options{.racks = 2, .aisles = 2};
  EXPECT_EQ(MakeCheckedPlan(MakeAllocation(8, 4, kUnlogged), {Ac922()}, options).racks, 2);
  options.nodes_per_rack = 18;
  EXPECT_THAT(Rejection(EX_USAGE, MakeAllocation(8, 4, kUnlogged), {Ac922()}, options),
              HasSubstr("--nodes 18 --racks 2 --aisles 2 make 72 nodes, but ranks are on 8"));
  options.nodes_per_rack.reset();
  EXPECT_THAT(Rejection(EX_USAGE, MakeAllocation(6, 4, kUnlogged), {Ac922()}, options),
              HasSubstr("make 4 nodes, but ranks are on 6"));
}

TEST(Planner, TakesAsManyGpusPerNodeAsThereMayBe) {
  EXPECT_THAT(
      Counts(MakeCheckedPlan(MakeAllocation(1, kUnlogged, kUnlogged), {}, {.gpus_per_node = 4096})),
      ElementsAre(4096));
}

TEST(Planner, RejectsOptionsOutOfRange) {
  const std::pair<PlacementOptions, std::string> rejected[] = {
      {{.ranks = 0}, "(-n) 0"},
      {{.mode = "x"}, "--mode x"},
      {{.racks = 0}, "--racks 0"},
      {{.gpus_per_node = -1}, "--accelerators -1"},
      {{.gpus_per_node = 5000}, "up to 4096"},
      {{.ranks_per_node = 2000000}, "2000000 ranks"},
  };
  for (const auto& [options, text] : rejected) {
    EXPECT_THAT(Rejection(EX_USAGE, MakeAllocation(1, 4, kUnlogged), {Ac922()}, options),
                HasSubstr(text));
  }
  EXPECT_THAT(Rejection(EX_SOFTWARE, MakeAllocation(3, 4, kUnlogged), {Ac922(), Ac922()}, {}),
              HasSubstr("2 topologies for 3 nodes"));
}

// GPUs that are not simply all of a node, or its first.

std::string Rejection(const Allocation& allocation, const PlacementOptions& options) {
  return tests::Rejection<LaunchError>(EX_CONFIG,
                                       [&] { MakePlan(allocation, {Ac922()}, options); });
}

TEST(PlannerGpus, StartsARankForEachGpuThatIsVisible) {
  Allocation allocation = MakeAllocation(1, kUnlogged, kUnlogged);
  allocation.origin = Allocation::Origin::kThisMachine;
  allocation.nodes[0].gpus_visible = 2;
  allocation.nodes[0].gpu_indices = {3, 1};
  const LaunchPlan plan = MakePlan(allocation, {Ac922()}, {});
  ASSERT_EQ(plan.ranks.size(), 2U);
  EXPECT_EQ(plan.ranks[0].gpu, 3);
  EXPECT_EQ(plan.ranks[0].numa_os_index, 8);
  EXPECT_EQ(plan.ranks[1].gpu, 1);
  EXPECT_EQ(plan.nodes[0].gpus, 0) << "nobody granted them";
  PlacementOptions options{.gpus_per_node = 1};
  EXPECT_EQ(MakePlan(allocation, {Ac922()}, options).ranks[0].gpu, 3);
  options.gpus_per_node = 3;
  EXPECT_THAT(Rejection(allocation, options),
              HasSubstr("3 GPUs per node asked for, but CUDA_VISIBLE_DEVICES leaves 2"));
  Allocation two_nodes = MakeAllocation(2, kUnlogged, kUnlogged);
  two_nodes.nodes[0] = allocation.nodes[0];
  EXPECT_EQ(MakePlan(two_nodes, {Ac922()}, {}).ranks.size(), 4U) << "the other is like the first";
  allocation.nodes[0].gpus_visible = 0;
  allocation.nodes[0].gpu_indices = {};
  EXPECT_EQ(MakePlan(allocation, {Ac922()}, {}).ranks[0].gpu, -1);
}

TEST(PlannerGpus, GivesRanksSlicesOfOneGpu) {
  Allocation allocation = MakeAllocation(1, 3, kUnlogged);
  allocation.nodes[0].gpu_indices = {0, 0, -1};
  const LaunchPlan plan = MakePlan(allocation, {MakeNode({4}, 1, {0})}, {});
  ASSERT_EQ(plan.ranks.size(), 3U);
  EXPECT_EQ(plan.ranks[1].gpu, 0);
  EXPECT_EQ(plan.ranks[2].gpu, -1);
  EXPECT_THAT(plan.warnings, IsEmpty());
}

// What holds for every plan, over all combinations of the nodes, allocations and options below.

std::vector<NodeTopology> AllTopologies() {
  std::vector<NodeTopology> nodes;
  for (const char* file : {"ac922_16c_4v100.xml", "ac922_20c_4v100.xml", "ac922_22c_4v100.xml",
                           "dgx1v.xml", "gb200_72c_4gpu.xml", "gh200_72c_1gpu.xml"}) {
    nodes.push_back(ReadTopologyFixture(file));
  }
  nodes.push_back(MakeNode({2}, 1, {}));                     // a laptop
  nodes.push_back(MakeNode({1}, 2, {}));                     // a small virtual machine
  nodes.push_back(MakeNode({7, 3, 1}, 2, {0, 1, 2}));        // what a cpuset may leave
  nodes.push_back(MakeNode({5}, 4, {0, -1, -1}));            // GPUs of a socket that is not ours
  nodes.push_back(MakeNode({8, 8}, 2, {1, 0, 1, 0, 1, 1}));  // PCI order against NUMA order
  return nodes;
}

std::vector<Allocation> AllAllocations() {
  std::vector<Allocation> allocations;
  for (const char* file :
       {"N1-gpus-per-node-2-ntasks-2-cpus-per-task-2.txt", "N2-exclusive-gres-gpu-4-time-mem0.txt",
        "N2-gpus-6-uneven.txt", "N2-gpus-per-node-4-gpus-per-task-1.txt", "N2-n6-gpus-6-uneven.txt",
        "N4-gres-gpu-4-ntasks-per-node-4.txt", "hetjob-1x4gpu-2x2gpu.txt", "n3-gpus-per-task-1.txt",
        "nonuniform-nodes-n1_n3_n4.txt", "salloc-N2-gres-gpu-2.txt"}) {
    allocations.push_back(ReadSlurmAllocation(ReadBatchEnvironment(file)).value());
  }
  for (const int slots : {-1, 1, 3, 8}) {
    for (const int gpus : {-1, 0, 1, 3}) allocations.push_back(MakeAllocation(3, gpus, slots));
  }
  return allocations;
}

std::vector<PlacementOptions> AllOptions() {
  std::vector<PlacementOptions> all;
  for (const std::optional<int> ranks : {std::optional<int>(), std::optional<int>(1),
                                         std::optional<int>(5), std::optional<int>(17)}) {
    for (const std::optional<int> cpus : {std::optional<int>(), std::optional<int>(3)}) {
      for (const bool oversubscribe : {false, true}) {
        for (const RankOrder order : {RankOrder::kByNode, RankOrder::kCyclic}) {
          all.push_back({.ranks = ranks,
                         .cpus_per_rank = cpus,
                         .oversubscribe = oversubscribe,
                         .order = order});
        }
      }
    }
  }
  return all;
}

// All ranks of a node are bound, or none, and a bound rank whose NUMA node is named has all cores
// there; without cpus_per_rank, shares within a group of equal GPUs' nodes differ by one at most.
void ExpectSoundBinding(const LaunchPlan& plan, const NodeTopology& node,
                        const PlacementOptions& options) {
  for (const NodePlacement& node_plan : plan.nodes) {
    std::size_t bound = 0;
    for (const int r : node_plan.ranks) {
      const RankPlacement& rank = plan.ranks[r];
      bound += rank.cores.empty() ? 0 : 1;
      std::set<int> numa;
      for (const int core : rank.cores)
        numa.insert(node.numa_nodes[node.cores[core].numa].os_index);
      if (numa.size() == 1) {
        EXPECT_EQ(rank.numa_os_index, *numa.begin());
      } else {
        EXPECT_EQ(rank.numa_os_index, -1);
      }
      if (options.cpus_per_rank && !rank.cores.empty()) {
        EXPECT_GE(rank.cpus.size(), static_cast<std::size_t>(*options.cpus_per_rank));
      }
    }
    EXPECT_TRUE(bound == 0 || bound == node_plan.ranks.size());
    if (bound == 0) {
      EXPECT_FALSE(plan.warnings.empty());
    }
  }
}

void ExpectSoundPlan(const LaunchPlan& plan, const NodeTopology& node,
                     const PlacementOptions& options) {
  EXPECT_EQ(FindPlanError(plan, options.oversubscribe), "");
  ASSERT_FALSE(plan.ranks.empty());
  if (options.ranks) {
    EXPECT_EQ(plan.ranks.size(), static_cast<std::size_t>(*options.ranks));
  }
  ExpectSoundBinding(plan, node, options);
  const rankfile::DdlOptions ddl = rankfile::ParseDdlOptions(DdlOptions(plan));
  EXPECT_EQ(ddl.RankCount(), static_cast<int>(plan.ranks.size()));
  EXPECT_EQ(rankfile::ParseDdlHostList(DdlHostList(plan)).ranks.size(), plan.ranks.size());
}

TEST(PlannerProperties, HoldForEveryCombination) {
  int plans = 0;
  int refusals = 0;
  const std::vector<Allocation> allocations = AllAllocations();
  const std::vector<PlacementOptions> all_options = AllOptions();
  for (const NodeTopology& node : AllTopologies()) {
    for (const Allocation& allocation : allocations) {
      for (const PlacementOptions& options : all_options) {
        try {
          ExpectSoundPlan(MakePlan(allocation, {node}, options), node, options);
          ++plans;
        } catch (const LaunchError& error) {
          EXPECT_EQ(error.exit_code(), EX_CONFIG) << error.what();
          // Tasks that leave GPUs idle are refused whatever may be shared.
          EXPECT_TRUE(!options.oversubscribe || !options.ranks) << error.what();
          ++refusals;
        }
        ASSERT_FALSE(HasFailure()) << allocation.origin_text << ", " << node.cores.size()
                                   << " cores, ranks " << options.ranks.value_or(-1);
      }
    }
  }
  // Both happen often, or the combinations above are no good.
  EXPECT_GT(plans, 4000);
  EXPECT_GT(refusals, 500);
}

}  // namespace
}  // namespace launcher
