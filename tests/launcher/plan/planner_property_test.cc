// SPDX-License-Identifier: Apache-2.0
//
// What holds for every plan, over all combinations of the nodes, allocations and options below.
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "launcher/base/error.h"
#include "launcher/plan/plan_check.h"
#include "launcher/plan/plan_files.h"
#include "launcher/plan/planner.h"
#include "launcher/slurm/slurm_allocation.h"
#include "rankfile/ddl.h"
#include "tests/launcher/plan/plan_fixtures.h"
#include "tests/launcher/slurm/slurm_environment_file.h"

namespace launcher {
namespace {

std::vector<NodeTopology> AllTopologies() {
  std::vector<NodeTopology> nodes;
  for (const char* file :
       {"ac922_16c_4v100.xml", "ac922_20c_4v100.xml", "ac922_22c_4v100.xml", "dgx1v.xml"}) {
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

std::vector<PlanOptions> AllOptions() {
  std::vector<PlanOptions> all;
  for (const std::optional<int> ranks : {std::optional<int>(), std::optional<int>(1),
                                         std::optional<int>(5), std::optional<int>(17)}) {
    for (const std::optional<int> cpus : {std::optional<int>(), std::optional<int>(3)}) {
      for (const bool oversubscribe : {false, true}) {
        for (const RankOrder order : {RankOrder::kByNode, RankOrder::kCyclic}) {
          PlanOptions options;
          options.ranks = ranks;
          options.cpus_per_rank = cpus;
          options.oversubscribe = oversubscribe;
          options.order = order;
          all.push_back(options);
        }
      }
    }
  }
  return all;
}

// All ranks of a node are bound, or none, and a bound rank whose NUMA node is named has all cores
// there; without cpus_per_rank, shares within a group of equal GPUs' nodes differ by one at most.
void ExpectSoundBinding(const Plan& plan, const NodeTopology& node, const PlanOptions& options) {
  for (const NodePlan& node_plan : plan.nodes) {
    std::size_t bound = 0;
    for (const int r : node_plan.ranks) {
      const RankPlan& rank = plan.ranks[r];
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

void ExpectSoundPlan(const Plan& plan, const NodeTopology& node, const PlanOptions& options) {
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
  const std::vector<PlanOptions> all_options = AllOptions();
  for (const NodeTopology& node : AllTopologies()) {
    for (const Allocation& allocation : allocations) {
      for (const PlanOptions& options : all_options) {
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
