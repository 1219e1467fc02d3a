// SPDX-License-Identifier: Apache-2.0
//
// The allocations of the real environments of tests/fixtures/slurm-env, which have every variable
// that a version of Slurm sets.

#include "launcher/slurm/slurm_allocation.h"
#include "tests/launcher/slurm/slurm_environment_file.h"
#include "tests/launcher/slurm/slurm_rejection.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// "job 12, 4 ranks, ? cpus: n1:2/4(0,1) n2:?/?": what is known of all ranks, and of each node the
// GPUs granted, the slots and the indices of GPUs; ? where the batch script cannot know or did not
// ask.
std::string Describe(const Allocation& allocation) {
  const auto known = [](std::optional<int> number) {
    return number ? std::to_string(*number) : std::string("?");
  };
  std::string text = "job " + allocation.job_id + ", " + known(allocation.ranks) + " ranks, " +
                     known(allocation.cpus_per_rank) + " cpus:";
  for (const AllocatedNode& node : allocation.nodes) {
    text += " " + node.host + ":" + known(node.gpus) + "/" + known(node.slots);
    std::string indices;
    for (const int index : node.gpu_indices) {
      indices += (indices.empty() ? "(" : ",") + std::to_string(index);
    }
    text += indices.empty() ? "" : indices + ")";
  }
  return text;
}

struct ExpectedAllocation {
  const char* file;  // without .txt
  const char* allocation;
};

// By hand, from the sbatch line at the top of each file. Only the batch host knows what --gres gave
// it; --gpus-per-node and --gpus-per-task are said for all nodes.
const std::vector<ExpectedAllocation>& Expected() {
  static const std::vector<ExpectedAllocation> table = {
      {"N1-gpus-per-node-2-ntasks-2-cpus-per-task-2", "job 8, 2 ranks, 2 cpus: n1:2/2(0,1)"},
      {"N2-array-requeue-signal", "job 10, ? ranks, ? cpus: n1:4/?(0,1,2,3) n2:?/?"},
      {"N2-exclusive-gres-gpu-4-time-mem0", "job 9, ? ranks, ? cpus: n1:4/?(0,1,2,3) n2:?/?"},
      {"N2-gpus-6-uneven", "job 4, ? ranks, ? cpus: n1:4/?(0,1,2,3) n2:2/?"},
      {"N2-gpus-per-node-2-ntasks-per-node-2", "job 2, 4 ranks, ? cpus: n1:2/2(0,1) n2:2/2"},
      {"N2-gpus-per-node-4-gpus-per-task-1", "job 7, 8 ranks, ? cpus: n1:4/4(0,1,2,3) n2:4/4"},
      {"N2-gres-gpu-4", "job 1, ? ranks, ? cpus: n1:4/?(0,1,2,3) n2:?/?"},
      {"N2-n6-gpus-6-uneven", "job 5, 6 ranks, ? cpus: n1:4/5(0,1,2,3) n2:2/1"},
      {"N4-gres-gpu-4-ntasks-per-node-4",
       "job 6, 16 ranks, ? cpus: n1:4/4(0,1,2,3) n2:?/4 n3:?/4 n4:?/4"},
      {"hetjob-1x4gpu-2x2gpu", "job 12, 4 ranks, ? cpus: n1:4/2(0,1,2,3) n2:?/1 n3:?/1"},
      {"n3-gpus-per-task-1", "job 3, 3 ranks, ? cpus: n1:3/3(0,1,2)"},
      {"nonuniform-nodes-n1_n3_n4", "job 11, ? ranks, ? cpus: n1:1/?(0) n3:?/? n4:?/?"},
      {"salloc-N2-gres-gpu-2", "job 14, ? ranks, ? cpus: n1:?/? n2:?/?"},
      {"slurm-24.11-N1-gpus-per-node-2-ntasks-2-cpus-per-task-2",
       "job 5, 2 ranks, 2 cpus: n1:2/2(0,1)"},
      {"slurm-24.11-N2-exclusive-gres-gpu-4", "job 6, ? ranks, ? cpus: n1:4/?(0,1,2,3) n2:?/?"},
      {"slurm-24.11-N2-gpus-6-uneven", "job 2, 6 ranks, ? cpus: n1:4/4(0,1,2,3) n2:2/2"},
      {"slurm-24.11-N3-gres-gpu-4-ntasks-per-node-4",
       "job 3, 12 ranks, ? cpus: n1:4/4(0,1,2,3) n2:?/4 n3:?/4"},
      {"slurm-24.11-N3-gres-gpu-4", "job 1, ? ranks, ? cpus: n1:4/?(0,1,2,3) n2:?/? n3:?/?"},
      {"slurm-24.11-n3-gpus-per-task-1", "job 4, 3 ranks, ? cpus: n1:3/3(0,1,2)"},
      {"slurm-26.05-N1-gpus-per-node-2-ntasks-2-cpus-per-task-2",
       "job 9, 2 ranks, 2 cpus: n1:2/2(0,1)"},
      {"slurm-26.05-N2-exclusive-gres-gpu-4", "job 10, ? ranks, ? cpus: n1:4/?(0,1,2,3) n2:?/?"},
      {"slurm-26.05-N2-gpus-6-uneven", "job 6, 6 ranks, ? cpus: n1:4/4(0,1,2,3) n2:2/2"},
      {"slurm-26.05-N3-gres-gpu-4-ntasks-per-node-4",
       "job 7, 12 ranks, ? cpus: n1:4/4(0,1,2,3) n2:?/4 n3:?/4"},
      {"slurm-26.05-N3-gres-gpu-4", "job 5, ? ranks, ? cpus: n1:4/?(0,1,2,3) n2:?/? n3:?/?"},
      {"slurm-26.05-n3-gpus-per-task-1", "job 8, 3 ranks, ? cpus: n1:3/3(0,1,2)"},
  };
  return table;
}

std::string File(const ExpectedAllocation& expected) { return std::string(expected.file) + ".txt"; }

TEST(RealEnvironments, AreReadAsTheirSbatchLineSays) {
  for (const ExpectedAllocation& expected : Expected()) {
    const auto allocation = ReadSlurmAllocation(ReadBatchEnvironment(File(expected)));
    ASSERT_TRUE(allocation.has_value());
    EXPECT_EQ(allocation->origin, Allocation::Origin::kSlurm);
    EXPECT_EQ(Describe(*allocation), expected.allocation) << expected.file;
  }
}

TEST(RealEnvironments, RejectsEveryTaskOfARealStep) {
  int tasks = 0;
  for (const ExpectedAllocation& expected : Expected()) {
    const auto sections = ReadEnvironmentFile(File(expected));
    for (std::size_t i = 1; i < sections.size(); ++i) {
      EXPECT_THAT(Rejection(sections[i].variables),
                  AllOf(HasSubstr("inside a step of srun"), HasSubstr("without srun")))
          << expected.file << ", " << sections[i].title;
      ++tasks;
    }
  }
  EXPECT_GT(tasks, 26);
}

}  // namespace
}  // namespace launcher
