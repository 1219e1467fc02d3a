// SPDX-License-Identifier: Apache-2.0
#include "launcher/allocation/slurm_allocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/error.h"
#include "tests/launcher/allocation/slurm_environment_file.h"

namespace launcher {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kUnknown = -1;

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

TEST(SlurmAllocation, ReadsRealEnvironments) {
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

std::string Refusal(const EnvironmentMap& environment) {
  try {
    ReadSlurmAllocation(environment);
  } catch (const LaunchError& error) {
    EXPECT_EQ(error.exit_code(), EX_CONFIG);
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.what();
  }
  return "";
}

TEST(SlurmAllocation, RefusesEveryTaskOfARealStep) {
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

TEST(SlurmAllocation, IsNothingOutsideSlurm) {
  EXPECT_FALSE(ReadSlurmAllocation({{"PATH", "/bin"}, {"SLURM_CONF", "/etc/slurm.conf"}}));
}

// sbatch -N2 --gres=gpu:4, on n1.
EnvironmentMap Batch() {
  return {{"SLURM_JOB_ID", "7"},
          {"SLURM_JOB_NODELIST", "n[1-2]"},
          {"SLURM_JOB_NUM_NODES", "2"},
          {"SLURM_NNODES", "2"},
          {"SLURM_TASKS_PER_NODE", "1(x2)"},
          {"SLURM_JOB_CPUS_PER_NODE", "8(x2)"},
          {"SLURMD_NODENAME", "n1"},
          {"SLURM_GPUS_ON_NODE", "4"},
          {"SLURM_JOB_GPUS", "0,1,2,3"},
          {"CUDA_VISIBLE_DEVICES", "0,1,2,3"}};
}

EnvironmentMap BatchWith(const EnvironmentMap& changes) {
  EnvironmentMap environment = Batch();
  for (const auto& [name, value] : changes) environment[name] = value;
  return environment;
}

EnvironmentMap BatchWithout(std::initializer_list<const char*> names) {
  EnvironmentMap environment = Batch();
  for (const char* name : names) environment.erase(name);
  return environment;
}

Allocation Read(const EnvironmentMap& environment) {
  return ReadSlurmAllocation(environment).value();
}

TEST(SlurmAllocation, SaysWhereItComesFrom) {
  EXPECT_EQ(Read(Batch()).origin_text, "SLURM_JOB_NODELIST=n[1-2]");
}

TEST(SlurmAllocation, RefusesAMissingNodeList) {
  EXPECT_THAT(Refusal(BatchWithout({"SLURM_JOB_NODELIST"})),
              AllOf(HasSubstr("SLURM_JOB_NODELIST is missing"), HasSubstr("--export=ALL")));
}

TEST(SlurmAllocation, RefusesANodeListOfAnotherLength) {
  EXPECT_THAT(Refusal(BatchWith({{"SLURM_JOB_NUM_NODES", "3"}})),
              AllOf(HasSubstr("SLURM_JOB_NUM_NODES=3"), HasSubstr("SLURM_JOB_NODELIST=n[1-2]"),
                    HasSubstr("--nodes=2")));
  EXPECT_THAT(Refusal(BatchWith({{"SLURM_NNODES", "1"}})), HasSubstr("SLURM_NNODES=1"));
  EXPECT_THAT(Refusal(BatchWith({{"SLURM_TASKS_PER_NODE", "1(x3)"}})),
              HasSubstr("SLURM_TASKS_PER_NODE=1(x3) (3 nodes)"));
  EXPECT_THAT(Refusal(BatchWith({{"SLURM_JOB_CPUS_PER_NODE", "8"}})),
              HasSubstr("SLURM_JOB_CPUS_PER_NODE=8 (1 nodes)"));
}

TEST(SlurmAllocation, RefusesBadNodeLists) {
  EXPECT_THAT(Refusal(BatchWith({{"SLURM_JOB_NODELIST", "n[1-"}})),
              HasSubstr("SLURM_JOB_NODELIST:1:"));
  EXPECT_THAT(Refusal(BatchWith({{"SLURM_JOB_NODELIST", "n1,n1"}})), HasSubstr("n1 twice"));
  EXPECT_THAT(Refusal(BatchWith({{"SLURM_JOB_NODELIST", std::string(200000, 'a')}})),
              HasSubstr("200000 bytes"));
}

TEST(SlurmAllocation, TakesTasksAsSlotsOnlyWhereTheyWereAskedFor) {
  EXPECT_FALSE(Read(Batch()).nodes[0].slots);
  const Allocation asked =
      Read(BatchWith({{"SLURM_NTASKS", "5"}, {"SLURM_TASKS_PER_NODE", "3,2"}}));
  EXPECT_EQ(asked.nodes[0].slots, 3);
  EXPECT_EQ(asked.nodes[1].slots, 2);
  EXPECT_EQ(asked.ranks, 5);
  EXPECT_EQ(Read(BatchWith({{"SLURM_NTASKS_PER_NODE", "2"}})).ranks, 4);
}

TEST(SlurmAllocation, RefusesTasksThatDoNotAddUp) {
  EXPECT_THAT(Refusal(BatchWith({{"SLURM_NTASKS", "8"}, {"SLURM_TASKS_PER_NODE", "3,2"}})),
              AllOf(HasSubstr("SLURM_NTASKS=8"), HasSubstr("SLURM_TASKS_PER_NODE=3,2"),
                    HasSubstr("--ntasks-per-node")));
  EXPECT_THAT(Refusal(BatchWith({{"SLURM_NTASKS", "5"},
                                 {"SLURM_TASKS_PER_NODE", "3,2"},
                                 {"SLURM_NTASKS_PER_NODE", "2"}})),
              AllOf(HasSubstr("SLURM_NTASKS_PER_NODE=2"), HasSubstr("SLURM_TASKS_PER_NODE=3,2")));
  EXPECT_THAT(Refusal(BatchWith({{"SLURM_NTASKS", "2"}, {"SLURM_TASKS_PER_NODE", "2,0"}})),
              HasSubstr("without a task"));
  EnvironmentMap no_list = BatchWithout({"SLURM_TASKS_PER_NODE"});
  no_list["SLURM_NTASKS"] = "4";
  EXPECT_THAT(Refusal(no_list), HasSubstr("SLURM_TASKS_PER_NODE is missing"));
  no_list["SLURM_NTASKS_PER_NODE"] = "2";
  EXPECT_EQ(Read(no_list).ranks, 4);
  no_list["SLURM_NTASKS"] = "3";
  EXPECT_THAT(Refusal(no_list), HasSubstr("SLURM_NTASKS=3 contradicts SLURM_NTASKS_PER_NODE=2"));
}

TEST(SlurmAllocation, KnowsGpusOfThisHostOnly) {
  const Allocation allocation = Read(Batch());
  EXPECT_EQ(allocation.nodes[0].gpus, 4);
  EXPECT_FALSE(allocation.nodes[1].gpus);
}

TEST(SlurmAllocation, KnowsGpusOfAllNodesWhereTheyAreSaidPerNode) {
  for (const char* value : {"4", "v100:4", "gpu:v100:4", "v100:3,a100:1"}) {
    const Allocation allocation = Read(BatchWith({{"SLURM_GPUS_PER_NODE", value}}));
    EXPECT_EQ(allocation.nodes[1].gpus, 4) << value;
  }
}

TEST(SlurmAllocation, RefusesGpuCountsThatContradict) {
  EXPECT_THAT(Refusal(BatchWith({{"SLURM_GPUS_PER_NODE", "v100:2"}})),
              AllOf(HasSubstr("SLURM_GPUS_ON_NODE=4 on n1"),
                    HasSubstr("SLURM_GPUS_PER_NODE=v100:2"), HasSubstr("--gpus-per-node=2")));
  EXPECT_THAT(Refusal(BatchWith({{"SLURM_JOB_GPUS", "0,1"}})),
              AllOf(HasSubstr("SLURM_JOB_GPUS=0,1"), HasSubstr("SLURM_GPUS_ON_NODE=4")));
  EXPECT_THAT(Refusal(BatchWith({{"CUDA_VISIBLE_DEVICES", "0"}})),
              AllOf(HasSubstr("CUDA_VISIBLE_DEVICES=0"), HasSubstr("SLURM_GPUS_ON_NODE=4"),
                    HasSubstr("unset CUDA_VISIBLE_DEVICES")));
  EXPECT_THAT(Refusal(BatchWith({{"CUDA_VISIBLE_DEVICES", ""}})),
              HasSubstr("CUDA_VISIBLE_DEVICES= contradicts"));
  EXPECT_THAT(Refusal(BatchWith({{"SLURM_GPUS_PER_NODE", "4"},
                                 {"SLURM_GPUS_PER_TASK", "3"},
                                 {"SLURM_NTASKS", "4"},
                                 {"SLURM_TASKS_PER_NODE", "2(x2)"}})),
              AllOf(HasSubstr("SLURM_GPUS_PER_TASK=3"), HasSubstr("SLURM_GPUS_PER_NODE=4"),
                    HasSubstr("--gpus-per-node=6")));
  EXPECT_THAT(Refusal(BatchWith({{"SLURMD_NODENAME", "login1"}})),
              AllOf(HasSubstr("SLURMD_NODENAME=login1"), HasSubstr("SLURM_JOB_NODELIST")));
}

TEST(SlurmAllocation, SplitsATotalOfGpusOnlyWhereThereIsOneWay) {
  EXPECT_EQ(Read(BatchWith({{"SLURM_GPUS", "7"}})).nodes[1].gpus, 3);
  EXPECT_THAT(Refusal(BatchWith({{"SLURM_GPUS", "3"}})),
              AllOf(HasSubstr("SLURM_GPUS=3"), HasSubstr("--gpus-per-node")));
  EXPECT_THAT(Refusal(BatchWith({{"SLURM_GPUS", "6"}, {"SLURM_GPUS_PER_NODE", "4"}})),
              AllOf(HasSubstr("SLURM_GPUS=6"), HasSubstr("8 GPUs")));
  const EnvironmentMap three = {{"SLURM_JOB_NODELIST", "n[1-3]"},
                                {"SLURM_JOB_NUM_NODES", "3"},
                                {"SLURM_NNODES", "3"},
                                {"SLURM_TASKS_PER_NODE", "1(x3)"},
                                {"SLURM_JOB_CPUS_PER_NODE", "8(x3)"}};
  EnvironmentMap uneven = BatchWith(three);
  uneven["SLURM_GPUS"] = "9";
  EXPECT_THAT(Read(uneven).gpus_unclear,
              AllOf(HasSubstr("SLURM_GPUS=9"), HasSubstr("--gpus-per-node")));
  EnvironmentMap even = BatchWith(three);
  even["SLURM_GPUS"] = "12";
  EXPECT_FALSE(Read(even).nodes[2].gpus);
  EXPECT_EQ(Read(even).gpus_unclear, "");
}

TEST(SlurmAllocation, SaysThatOnlySlurmKnowsTheGpusOfSallocAndOfOtherComponents) {
  const Allocation shell = Read(ReadEnvironmentFile("salloc-N2-gres-gpu-2.txt")[0].variables);
  EXPECT_THAT(shell.gpus_unclear, HasSubstr("no variable says how many GPUs n1 has"));
  const Allocation batch = Read(ReadEnvironmentFile("hetjob-1x4gpu-2x2gpu.txt")[0].variables);
  EXPECT_THAT(batch.gpus_unclear, HasSubstr("no variable says how many GPUs n2 has"));
}

TEST(SlurmAllocation, KnowsThatNoGpuWasGranted) {
  const EnvironmentMap none =
      BatchWithout({"SLURM_GPUS_ON_NODE", "SLURM_JOB_GPUS", "CUDA_VISIBLE_DEVICES"});
  EXPECT_EQ(Read(none).nodes[0].gpus, 0);
  // GPUs that Slurm does not manage: only the node knows.
  EXPECT_FALSE(Read(BatchWithout({"SLURM_GPUS_ON_NODE", "SLURM_JOB_GPUS"})).nodes[0].gpus);
}

TEST(SlurmAllocation, KeepsTheNumbersOfTheGpusOfThisHost) {
  const Allocation allocation = Read(BatchWith(
      {{"SLURM_GPUS_ON_NODE", "2"}, {"SLURM_JOB_GPUS", "2-3"}, {"CUDA_VISIBLE_DEVICES", "0,1"}}));
  EXPECT_THAT(allocation.nodes[0].gpu_indices, ElementsAre(2, 3));
}

TEST(SlurmAllocation, AcceptsTheOnlyTaskOfAStep) {
  // srun -N1 --gres=gpu:4 --pty bash: srun always sets SLURM_NTASKS, nobody asked for one rank.
  EnvironmentMap shell = BatchWith({{"SLURM_JOB_NODELIST", "n1"},
                                    {"SLURM_JOB_NUM_NODES", "1"},
                                    {"SLURM_NNODES", "1"},
                                    {"SLURM_NTASKS", "1"},
                                    {"SLURM_TASKS_PER_NODE", "1"},
                                    {"SLURM_JOB_CPUS_PER_NODE", "8"},
                                    {"SLURM_CPUS_PER_TASK", "8"},
                                    {"SLURM_STEP_ID", "0"},
                                    {"SLURM_STEP_NUM_TASKS", "1"}});
  const Allocation allocation = Read(shell);
  EXPECT_FALSE(allocation.nodes[0].slots);
  EXPECT_FALSE(allocation.ranks);
  EXPECT_FALSE(allocation.cpus_per_rank);
  EXPECT_EQ(allocation.nodes[0].gpus, 4);

  EXPECT_TRUE(allocation.in_step);

  // A step on one node of a job of two.
  const Allocation two = Read(
      BatchWith({{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_NNODES", "1"}}));
  EXPECT_EQ(two.nodes.size(), 2U);
  EXPECT_FALSE(two.ranks);
  // salloc's own shell on a compute node is a special step, and so are batch scripts since 26.05.
  for (const char* step : {"4294967290", "4294967280", "-5", "-6"}) {
    EXPECT_FALSE(Read(BatchWith({{"SLURM_STEP_ID", step}, {"SLURM_NTASKS", "2"}})).in_step) << step;
  }
  EXPECT_TRUE(Read(BatchWith({{"SLURM_STEP_ID", "4294967279"}})).in_step);
}

TEST(SlurmAllocation, AcceptsTheShellOfPtyThoughTheStepHasATaskPerNode) {
  EnvironmentMap shell = BatchWith(
      {{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PTY_PORT", "4711"}});
  EXPECT_TRUE(Read(shell).in_step);
  shell["SLURM_PROCID"] = "1";
  EXPECT_THAT(Refusal(shell), HasSubstr("as task 1 of SLURM_STEP_NUM_TASKS=2"));
}

TEST(SlurmAllocation, KnowsAStepOfSrunThoughSomeOfItsVariablesAreOdd) {
  EXPECT_THAT(Refusal(BatchWith({{"SLURM_STEP_ID", "new.0"}, {"SLURM_STEP_NUM_TASKS", "2"}})),
              HasSubstr("as task 0 of SLURM_STEP_NUM_TASKS=2"));
  EXPECT_THAT(
      Refusal(BatchWith(
          {{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "some"}, {"SLURM_NTASKS", "4"}})),
      HasSubstr("as task 0 of SLURM_NTASKS=4"));
  EXPECT_THAT(Refusal(BatchWith({{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "1"}})),
              HasSubstr("as task 1 of several"));
  EXPECT_TRUE(Read(BatchWith({{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "0"}})).in_step);
}

TEST(SlurmAllocation, RefusesMalformedNumbersWhereTheyAreNeeded) {
  EXPECT_THAT(Refusal(BatchWith({{"SLURM_JOB_ID", "abc"}})), HasSubstr("SLURM_JOB_ID=abc"));
  EXPECT_THAT(Refusal(BatchWith({{"SLURM_HET_SIZE", "100000"}})), HasSubstr("SLURM_HET_SIZE"));
  for (const char* value : {"x", "-1", "4 ", "99999999999"}) {
    EXPECT_THAT(Refusal(BatchWith({{"SLURM_NTASKS", value}})),
                HasSubstr("SLURM_NTASKS=" + std::string(value)));
    EXPECT_THAT(Refusal(BatchWith({{"SLURM_NTASKS_PER_NODE", value}})),
                HasSubstr("SLURM_NTASKS_PER_NODE=" + std::string(value)));
  }
  // Which node has how many is said by nothing else.
  EXPECT_THAT(Refusal(BatchWith({{"SLURM_NTASKS", "5"}, {"SLURM_TASKS_PER_NODE", "4(x"}})),
              HasSubstr("SLURM_TASKS_PER_NODE is missing"));
}

TEST(SlurmAllocation, GoesOnWithoutWhatIsInNoKnownForm) {
  for (const char* name : {"SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE", "SLURM_JOB_NUM_NODES",
                           "SLURM_NNODES", "SLURM_CPUS_PER_TASK", "SLURM_TRES_PER_TASK",
                           "SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_NEWS"}) {
    for (const char* value : {"x", "-5", "4 ", "99999999999999999999", "4(x", "4(x0)", "(x2)",
                              "1,,1", "1(x99999999)", "=", "a:b"}) {
      SCOPED_TRACE(std::string(name) + "=" + value);
      const Allocation allocation = Read(BatchWith({{name, value}}));
      EXPECT_EQ(allocation.nodes.size(), 2U);
      EXPECT_EQ(allocation.nodes[0].gpus, 4);
      EXPECT_FALSE(allocation.in_step);
      EXPECT_FALSE(allocation.ranks);
      EXPECT_FALSE(allocation.cpus_per_rank);
      EXPECT_EQ(allocation.gpus_unclear, "");
    }
  }
  EXPECT_FALSE(Read(BatchWith({{"SLURM_CPUS_PER_TASK", "0"}})).cpus_per_rank);
  EXPECT_EQ(Read(BatchWithout({"SLURM_JOB_NUM_NODES", "SLURM_NNODES"})).nodes.size(), 2U);
  const Allocation counted = Read(BatchWith(
      {{"SLURM_NTASKS", "5"}, {"SLURM_TASKS_PER_NODE", "3,2"}, {"SLURM_NTASKS_PER_NODE", "many"}}));
  EXPECT_EQ(counted.ranks, 5);
}

TEST(SlurmAllocation, DoesWithoutTheNumbersOfItsGpus) {
  for (const char* value : {"3-1", "0,0,1,2", "0-", "0,x", "GPU-1", "0-9999999", ""}) {
    const Allocation allocation = Read(BatchWith({{"SLURM_JOB_GPUS", value}}));
    EXPECT_EQ(allocation.nodes[0].gpus, 4) << value;
    EXPECT_THAT(allocation.nodes[0].gpu_indices, ElementsAre()) << value;
  }
}

TEST(SlurmAllocation, AsksSlurmItselfForGpusThatAreInNoKnownForm) {
  for (const char* name : {"SLURM_GPUS_PER_NODE", "SLURM_GPUS_PER_TASK", "SLURM_GPUS"}) {
    for (const char* value : {"v100:", "v100:x", ":", "4,", "9999999", "-4"}) {
      const Allocation allocation = Read(BatchWith({{name, value}}));
      EXPECT_EQ(allocation.nodes[0].gpus, 4) << value;
      EXPECT_THAT(allocation.gpus_unclear,
                  AllOf(HasSubstr(std::string(name) + "=" + value), HasSubstr("--accelerators")));
    }
  }
  EnvironmentMap here = BatchWith({{"SLURM_GPUS_ON_NODE", "some"}});
  EXPECT_EQ(Read(here).gpus_unclear, "");  // SLURM_JOB_GPUS says it
  here.erase("SLURM_JOB_GPUS");
  here.erase("CUDA_VISIBLE_DEVICES");
  EXPECT_FALSE(Read(here).nodes[0].gpus);
  EXPECT_THAT(Read(here).gpus_unclear, HasSubstr("SLURM_GPUS_ON_NODE=some"));
  // Said by another variable for all nodes.
  EXPECT_EQ(Read(BatchWith({{"SLURM_GPUS_PER_NODE", "4"}, {"SLURM_GPUS", "x"}})).gpus_unclear, "");
}

TEST(SlurmAllocation, ReadsWhatATaskGetsFromItsTres) {
  const EnvironmentMap tasks = {{"SLURM_NTASKS", "5"}, {"SLURM_TASKS_PER_NODE", "4,1"}};
  for (const char* value : {"gres/gpu=1", "gres/gpu:v100=1", "cpu=2,gres/gpu=1", "cpu:2,gres:gpu:1",
                            "gres:gpu:v100:1", "license/x=3,gres/gpu:1"}) {
    EnvironmentMap environment = BatchWith(tasks);
    environment["SLURM_TRES_PER_TASK"] = value;
    const Allocation allocation = Read(environment);
    EXPECT_EQ(allocation.nodes[1].gpus, 1) << value;
    const bool has_cpus = std::string(value).starts_with("cpu");
    EXPECT_EQ(allocation.cpus_per_rank.value_or(kUnknown), has_cpus ? 2 : kUnknown) << value;
  }
  EnvironmentMap other = BatchWith(tasks);
  other["SLURM_TRES_PER_TASK"] = "gres/gpumem=8,gres/fpga=3";
  EXPECT_FALSE(Read(other).nodes[1].gpus);
  other["SLURM_TRES_PER_TASK"] = "cpu=9,gres/gpu=4";
  other["SLURM_CPUS_PER_TASK"] = "2";
  other["SLURM_GPUS_PER_TASK"] = "1";
  EXPECT_EQ(Read(other).nodes[1].gpus, 1);
  EXPECT_EQ(Read(other).cpus_per_rank, 2);
}

TEST(SlurmAllocation, RefusesAbsurdCounts) {
  EXPECT_THAT(Refusal(BatchWith({{"SLURM_NTASKS_PER_NODE", "2000000000"}})),
              HasSubstr("4000000000 tasks"));
  EnvironmentMap salloc = BatchWithout(
      {"SLURMD_NODENAME", "SLURM_GPUS_ON_NODE", "SLURM_JOB_GPUS", "CUDA_VISIBLE_DEVICES"});
  salloc["SLURM_NTASKS_PER_NODE"] = "5";
  salloc["SLURM_GPUS_PER_TASK"] = "1000";
  EXPECT_THAT(Refusal(salloc), HasSubstr("n1 would have 5000 GPUs"));
}

TEST(SlurmAllocation, ShowsBinaryValuesAsOneLine) {
  const std::string message = Refusal(BatchWith({{"SLURM_JOB_ID", "2\n\x01"}}));
  EXPECT_THAT(message, HasSubstr("SLURM_JOB_ID=2??"));
}

TEST(SlurmAllocation, RefusesComponentsWithDifferentCpusPerTask) {
  EnvironmentMap het = ReadBatchEnvironment("hetjob-1x4gpu-2x2gpu.txt");
  het["SLURM_CPUS_PER_TASK_HET_GROUP_0"] = "2";
  het["SLURM_CPUS_PER_TASK_HET_GROUP_1"] = "4";
  EXPECT_THAT(Refusal(het), AllOf(HasSubstr("SLURM_CPUS_PER_TASK_HET_GROUP_1=4"),
                                  HasSubstr("2 CPUs per task of another component")));
}

TEST(SlurmAllocation, RefusesAHostInTwoComponents) {
  EnvironmentMap het = ReadBatchEnvironment("hetjob-1x4gpu-2x2gpu.txt");
  het["SLURM_JOB_NODELIST_HET_GROUP_0"] = "n2";
  EXPECT_THAT(Refusal(het), HasSubstr("n2 is in components 0 and 1 of the heterogeneous job"));
}

}  // namespace
}  // namespace launcher
