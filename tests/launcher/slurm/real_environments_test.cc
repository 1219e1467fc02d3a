// SPDX-License-Identifier: Apache-2.0
//
// The allocations of the real environments of tests/fixtures/slurm-env, which have every variable
// that a version of Slurm sets.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/slurm/slurm_allocation.h"
#include "tests/launcher/slurm/slurm_environment_file.h"
#include "tests/launcher/slurm/slurm_refusal.h"

namespace launcher {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// host, GPUs granted, slots; kUnknown where the batch script cannot know or did not ask.
struct ExpectedNode {
  const char* host;
  int gpus;
  int slots;
};

struct ExpectedAllocation {
  const char* file;
  const char* job_id;
  int ranks;
  int cpus_per_rank;
  std::vector<int> gpu_indices;  // of the first node
  std::vector<ExpectedNode> nodes;
};

// By hand, from the sbatch line at the top of each file. Only the batch host knows what --gres gave
// it; --gpus-per-node and --gpus-per-task are said for all nodes.
const std::vector<ExpectedAllocation>& Expected() {
  static const std::vector<ExpectedAllocation> table = {
      {"N1-gpus-per-node-2-ntasks-2-cpus-per-task-2.txt", "8", 2, 2, {0, 1}, {{"n1", 2, 2}}},
      {"N2-array-requeue-signal.txt",
       "10",
       kUnknown,
       kUnknown,
       {0, 1, 2, 3},
       {{"n1", 4, kUnknown}, {"n2", kUnknown, kUnknown}}},
      {"N2-exclusive-gres-gpu-4-time-mem0.txt",
       "9",
       kUnknown,
       kUnknown,
       {0, 1, 2, 3},
       {{"n1", 4, kUnknown}, {"n2", kUnknown, kUnknown}}},
      {"N2-gpus-6-uneven.txt",
       "4",
       kUnknown,
       kUnknown,
       {0, 1, 2, 3},
       {{"n1", 4, kUnknown}, {"n2", 2, kUnknown}}},
      {"N2-gpus-per-node-2-ntasks-per-node-2.txt",
       "2",
       4,
       kUnknown,
       {0, 1},
       {{"n1", 2, 2}, {"n2", 2, 2}}},
      {"N2-gpus-per-node-4-gpus-per-task-1.txt",
       "7",
       8,
       kUnknown,
       {0, 1, 2, 3},
       {{"n1", 4, 4}, {"n2", 4, 4}}},
      {"N2-gres-gpu-4.txt",
       "1",
       kUnknown,
       kUnknown,
       {0, 1, 2, 3},
       {{"n1", 4, kUnknown}, {"n2", kUnknown, kUnknown}}},
      {"N2-n6-gpus-6-uneven.txt", "5", 6, kUnknown, {0, 1, 2, 3}, {{"n1", 4, 5}, {"n2", 2, 1}}},
      {"N4-gres-gpu-4-ntasks-per-node-4.txt",
       "6",
       16,
       kUnknown,
       {0, 1, 2, 3},
       {{"n1", 4, 4}, {"n2", kUnknown, 4}, {"n3", kUnknown, 4}, {"n4", kUnknown, 4}}},
      {"hetjob-1x4gpu-2x2gpu.txt",
       "12",
       4,
       kUnknown,
       {0, 1, 2, 3},
       {{"n1", 4, 2}, {"n2", kUnknown, 1}, {"n3", kUnknown, 1}}},
      {"n3-gpus-per-task-1.txt", "3", 3, kUnknown, {0, 1, 2}, {{"n1", 3, 3}}},
      {"nonuniform-nodes-n1_n3_n4.txt",
       "11",
       kUnknown,
       kUnknown,
       {0},
       {{"n1", 1, kUnknown}, {"n3", kUnknown, kUnknown}, {"n4", kUnknown, kUnknown}}},
      {"salloc-N2-gres-gpu-2.txt",
       "14",
       kUnknown,
       kUnknown,
       {},
       {{"n1", kUnknown, kUnknown}, {"n2", kUnknown, kUnknown}}},
      {"slurm-24.11-N1-gpus-per-node-2-ntasks-2-cpus-per-task-2.txt",
       "5",
       2,
       2,
       {0, 1},
       {{"n1", 2, 2}}},
      {"slurm-24.11-N2-exclusive-gres-gpu-4.txt",
       "6",
       kUnknown,
       kUnknown,
       {0, 1, 2, 3},
       {{"n1", 4, kUnknown}, {"n2", kUnknown, kUnknown}}},
      {"slurm-24.11-N2-gpus-6-uneven.txt",
       "2",
       6,
       kUnknown,
       {0, 1, 2, 3},
       {{"n1", 4, 4}, {"n2", 2, 2}}},
      {"slurm-24.11-N3-gres-gpu-4-ntasks-per-node-4.txt",
       "3",
       12,
       kUnknown,
       {0, 1, 2, 3},
       {{"n1", 4, 4}, {"n2", kUnknown, 4}, {"n3", kUnknown, 4}}},
      {"slurm-24.11-N3-gres-gpu-4.txt",
       "1",
       kUnknown,
       kUnknown,
       {0, 1, 2, 3},
       {{"n1", 4, kUnknown}, {"n2", kUnknown, kUnknown}, {"n3", kUnknown, kUnknown}}},
      {"slurm-24.11-n3-gpus-per-task-1.txt", "4", 3, kUnknown, {0, 1, 2}, {{"n1", 3, 3}}},
      {"slurm-26.05-N1-gpus-per-node-2-ntasks-2-cpus-per-task-2.txt",
       "9",
       2,
       2,
       {0, 1},
       {{"n1", 2, 2}}},
      {"slurm-26.05-N2-exclusive-gres-gpu-4.txt",
       "10",
       kUnknown,
       kUnknown,
       {0, 1, 2, 3},
       {{"n1", 4, kUnknown}, {"n2", kUnknown, kUnknown}}},
      {"slurm-26.05-N2-gpus-6-uneven.txt",
       "6",
       6,
       kUnknown,
       {0, 1, 2, 3},
       {{"n1", 4, 4}, {"n2", 2, 2}}},
      {"slurm-26.05-N3-gres-gpu-4-ntasks-per-node-4.txt",
       "7",
       12,
       kUnknown,
       {0, 1, 2, 3},
       {{"n1", 4, 4}, {"n2", kUnknown, 4}, {"n3", kUnknown, 4}}},
      {"slurm-26.05-N3-gres-gpu-4.txt",
       "5",
       kUnknown,
       kUnknown,
       {0, 1, 2, 3},
       {{"n1", 4, kUnknown}, {"n2", kUnknown, kUnknown}, {"n3", kUnknown, kUnknown}}},
      {"slurm-26.05-n3-gpus-per-task-1.txt", "8", 3, kUnknown, {0, 1, 2}, {{"n1", 3, 3}}},
  };
  return table;
}

TEST(RealEnvironments, AreReadAsTheirSbatchLineSays) {
  for (const ExpectedAllocation& expected : Expected()) {
    SCOPED_TRACE(expected.file);
    const auto allocation = ReadSlurmAllocation(ReadBatchEnvironment(expected.file));
    ASSERT_TRUE(allocation.has_value());
    EXPECT_EQ(allocation->origin, Allocation::Origin::kSlurm);
    EXPECT_EQ(allocation->job_id, expected.job_id);
    EXPECT_EQ(allocation->ranks.value_or(kUnknown), expected.ranks);
    EXPECT_EQ(allocation->cpus_per_rank.value_or(kUnknown), expected.cpus_per_rank);
    ASSERT_EQ(allocation->nodes.size(), expected.nodes.size());
    for (std::size_t i = 0; i < expected.nodes.size(); ++i) {
      const AllocatedNode& node = allocation->nodes[i];
      EXPECT_EQ(node.host, expected.nodes[i].host);
      EXPECT_EQ(node.gpus.value_or(kUnknown), expected.nodes[i].gpus) << node.host;
      EXPECT_EQ(node.slots.value_or(kUnknown), expected.nodes[i].slots) << node.host;
      EXPECT_EQ(node.gpu_indices, i == 0 ? expected.gpu_indices : std::vector<int>{}) << node.host;
    }
  }
}

TEST(RealEnvironments, RefusesEveryTaskOfARealStep) {
  int tasks = 0;
  for (const ExpectedAllocation& expected : Expected()) {
    const auto sections = ReadEnvironmentFile(expected.file);
    for (std::size_t i = 1; i < sections.size(); ++i) {
      EXPECT_THAT(Refusal(sections[i].variables),
                  AllOf(HasSubstr("inside a step of srun"), HasSubstr("without srun")))
          << expected.file << ", " << sections[i].title;
      ++tasks;
    }
  }
  EXPECT_GT(tasks, 26);
}

}  // namespace
}  // namespace launcher
