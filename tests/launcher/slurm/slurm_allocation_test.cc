// SPDX-License-Identifier: Apache-2.0

#include "launcher/slurm/slurm_allocation.h"

#include "launcher/base/error.h"
#include "launcher/slurm/complete_allocation.h"
#include "rankfile/placement.h"
#include "tests/launcher/slurm/slurm_environment_file.h"
#include "tests/launcher/slurm/slurm_rejection.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_directory.h"

namespace launcher {
namespace {

TEST(SlurmAllocation, IsNothingOutsideSlurm) {
  EXPECT_FALSE(ReadSlurmAllocation({{"PATH", "/bin"}, {"SLURM_CONF", "/etc/slurm.conf"}}));
}

// sbatch -N2 --gres=gpu:4, on n1.
Environment Batch() {
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

Environment BatchWith(const Environment& changes) {
  Environment environment = Batch();
  for (const auto& [name, value] : changes) environment[name] = value;
  return environment;
}

Environment BatchWithout(std::initializer_list<const char*> names) {
  Environment environment = Batch();
  for (const char* name : names) environment.erase(name);
  return environment;
}

Allocation Read(const Environment& environment) { return ReadSlurmAllocation(environment).value(); }

TEST(SlurmAllocation, SaysWhereItComesFrom) {
  EXPECT_EQ(Read(Batch()).origin_text, "SLURM_JOB_NODELIST=n[1-2]");
}

TEST(SlurmAllocation, RejectsAMissingNodeList) {
  EXPECT_THAT(Rejection(BatchWithout({"SLURM_JOB_NODELIST"})),
              AllOf(HasSubstr("SLURM_JOB_NODELIST is missing"), HasSubstr("--export=ALL")));
}

TEST(SlurmAllocation, RejectsANodeListOfAnotherLength) {
  EXPECT_THAT(Rejection(BatchWith({{"SLURM_JOB_NUM_NODES", "3"}})),
              AllOf(HasSubstr("SLURM_JOB_NUM_NODES=3"), HasSubstr("SLURM_JOB_NODELIST=n[1-2]"),
                    HasSubstr("--nodes=2")));
  EXPECT_THAT(Rejection(BatchWith({{"SLURM_NNODES", "1"}})), HasSubstr("SLURM_NNODES=1"));
  EXPECT_THAT(Rejection(BatchWith({{"SLURM_TASKS_PER_NODE", "1(x3)"}})),
              HasSubstr("SLURM_TASKS_PER_NODE=1(x3) (3 nodes)"));
  EXPECT_THAT(Rejection(BatchWith({{"SLURM_JOB_CPUS_PER_NODE", "8"}})),
              HasSubstr("SLURM_JOB_CPUS_PER_NODE=8 (1 nodes)"));
}

TEST(SlurmAllocation, RejectsBadNodeLists) {
  EXPECT_THAT(Rejection(BatchWith({{"SLURM_JOB_NODELIST", "n[1-"}})),
              HasSubstr("SLURM_JOB_NODELIST:1:"));
  EXPECT_THAT(Rejection(BatchWith({{"SLURM_JOB_NODELIST", "n1,n1"}})), HasSubstr("n1 twice"));
  EXPECT_THAT(Rejection(BatchWith({{"SLURM_JOB_NODELIST", std::string(200000, 'a')}})),
              HasSubstr("200000 bytes"));
}

TEST(SlurmAllocation, TakesTasksAsSlotsOnlyWhereTheyWereAskedFor) {
  EXPECT_FALSE(Read(Batch()).nodes[0].slots);
  const Allocation requested =
      Read(BatchWith({{"SLURM_NTASKS", "5"}, {"SLURM_TASKS_PER_NODE", "3,2"}}));
  EXPECT_EQ(requested.nodes[0].slots, 3);
  EXPECT_EQ(requested.nodes[1].slots, 2);
  EXPECT_EQ(requested.ranks, 5);
  EXPECT_EQ(Read(BatchWith({{"SLURM_NTASKS_PER_NODE", "2"}})).ranks, 4);
}

TEST(SlurmAllocation, RejectsTasksThatDoNotAddUp) {
  EXPECT_THAT(Rejection(BatchWith({{"SLURM_NTASKS", "8"}, {"SLURM_TASKS_PER_NODE", "3,2"}})),
              AllOf(HasSubstr("SLURM_NTASKS=8"), HasSubstr("SLURM_TASKS_PER_NODE=3,2"),
                    HasSubstr("--ntasks-per-node")));
  EXPECT_THAT(Rejection(BatchWith({{"SLURM_NTASKS", "5"},
                                   {"SLURM_TASKS_PER_NODE", "3,2"},
                                   {"SLURM_NTASKS_PER_NODE", "2"}})),
              AllOf(HasSubstr("SLURM_NTASKS_PER_NODE=2"), HasSubstr("SLURM_TASKS_PER_NODE=3,2")));
  EXPECT_THAT(Rejection(BatchWith({{"SLURM_NTASKS", "2"}, {"SLURM_TASKS_PER_NODE", "2,0"}})),
              HasSubstr("without a task"));
  Environment no_list = BatchWithout({"SLURM_TASKS_PER_NODE"});
  no_list["SLURM_NTASKS"] = "4";
  EXPECT_THAT(Rejection(no_list), HasSubstr("SLURM_TASKS_PER_NODE is missing"));
  no_list["SLURM_NTASKS_PER_NODE"] = "2";
  EXPECT_EQ(Read(no_list).ranks, 4);
  no_list["SLURM_NTASKS"] = "3";
  EXPECT_THAT(Rejection(no_list), HasSubstr("SLURM_NTASKS=3 contradicts SLURM_NTASKS_PER_NODE=2"));
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

TEST(SlurmAllocation, RejectsGpuCountsThatContradict) {
  EXPECT_THAT(Rejection(BatchWith({{"SLURM_GPUS_PER_NODE", "v100:2"}})),
              AllOf(HasSubstr("SLURM_GPUS_ON_NODE=4 on n1"),
                    HasSubstr("SLURM_GPUS_PER_NODE=v100:2"), HasSubstr("--gpus-per-node=2")));
  EXPECT_THAT(Rejection(BatchWith({{"SLURM_JOB_GPUS", "0,1"}})),
              AllOf(HasSubstr("SLURM_JOB_GPUS=0,1"), HasSubstr("SLURM_GPUS_ON_NODE=4")));
  EXPECT_THAT(Rejection(BatchWith({{"CUDA_VISIBLE_DEVICES", "0"}})),
              AllOf(HasSubstr("CUDA_VISIBLE_DEVICES=0"), HasSubstr("SLURM_GPUS_ON_NODE=4"),
                    HasSubstr("unset CUDA_VISIBLE_DEVICES")));
  for (const std::string none : {"", "NoDevFiles", "-1"}) {
    EXPECT_THAT(Rejection(BatchWith({{"CUDA_VISIBLE_DEVICES", none}})),
                HasSubstr("CUDA_VISIBLE_DEVICES=" + none +
                          " contradicts SLURM_GPUS_ON_NODE=4: unset CUDA_VISIBLE_DEVICES, or run "
                          "without GPUs with ddlrun --accelerators 0"));
  }
  EXPECT_THAT(Rejection(BatchWith({{"SLURM_GPUS_PER_NODE", "4"},
                                   {"SLURM_GPUS_PER_TASK", "3"},
                                   {"SLURM_NTASKS", "4"},
                                   {"SLURM_TASKS_PER_NODE", "2(x2)"}})),
              AllOf(HasSubstr("SLURM_GPUS_PER_TASK=3"), HasSubstr("SLURM_GPUS_PER_NODE=4"),
                    HasSubstr("--gpus-per-node=6")));
  EXPECT_THAT(Rejection(BatchWith({{"SLURMD_NODENAME", "login1"}})),
              AllOf(HasSubstr("SLURMD_NODENAME=login1"), HasSubstr("SLURM_JOB_NODELIST")));
}

TEST(SlurmAllocation, SplitsATotalOfGpusOnlyWhereThereIsOneWay) {
  EXPECT_EQ(Read(BatchWith({{"SLURM_GPUS", "7"}})).nodes[1].gpus, 3);
  EXPECT_EQ(Read(BatchWith({{"SLURM_GPUS", "4"}})).nodes[1].gpus, 0);
  EXPECT_EQ(Read(BatchWith({{"SLURM_GPUS", "3"}})).gpus_unclear,
            "SLURM_GPUS=3, but n1 alone has 4");  // whole nodes
  EXPECT_THAT(Rejection(BatchWith({{"SLURM_GPUS", "6"}, {"SLURM_GPUS_PER_NODE", "4"}})),
              AllOf(HasSubstr("SLURM_GPUS=6"), HasSubstr("8 GPUs")));
  const Environment three = {{"SLURM_JOB_NODELIST", "n[1-3]"},
                             {"SLURM_JOB_NUM_NODES", "3"},
                             {"SLURM_NNODES", "3"},
                             {"SLURM_TASKS_PER_NODE", "1(x3)"},
                             {"SLURM_JOB_CPUS_PER_NODE", "8(x3)"}};
  Environment uneven = BatchWith(three);
  uneven["SLURM_GPUS"] = "9";
  EXPECT_THAT(Read(uneven).gpus_unclear,
              AllOf(HasSubstr("SLURM_GPUS=9"), HasSubstr("--gpus-per-node")));
  Environment even = BatchWith(three);
  even["SLURM_GPUS"] = "12";
  EXPECT_FALSE(Read(even).nodes[2].gpus);
  EXPECT_EQ(Read(even).gpus_unclear, "");
}

TEST(SlurmAllocation, AsksSlurmWhereGpusOfTasksMayBeSpreadOtherwise) {
  const Environment tasks = {
      {"SLURM_NTASKS", "4"}, {"SLURM_TASKS_PER_NODE", "2(x2)"}, {"SLURM_GPUS_PER_TASK", "1"}};
  const std::string unclear = "SLURM_GPUS_PER_TASK=1 does not say how many GPUs each node has";
  EXPECT_EQ(Read(BatchWith(tasks)).gpus_unclear, unclear);  // n1 has 4
  Environment as_said = BatchWith(tasks);
  as_said["SLURM_GPUS_PER_TASK"] = "2";  // n2 then has the other 4
  EXPECT_EQ(Read(as_said).gpus_unclear, "");
  as_said.erase("SLURMD_NODENAME");  // in the shell of salloc nothing tells
  for (const char* name : {"SLURM_GPUS_ON_NODE", "SLURM_JOB_GPUS", "CUDA_VISIBLE_DEVICES"}) {
    as_said.erase(name);
  }
  EXPECT_THAT(Read(as_said).gpus_unclear, HasSubstr("SLURM_GPUS_PER_TASK=2 does not say"));
  as_said["SLURM_NTASKS_PER_NODE"] = "2";  // by which Slurm goes
  EXPECT_EQ(Read(as_said).gpus_unclear, "");
  Environment by_node = BatchWith(tasks);
  by_node["SLURM_NTASKS_PER_NODE"] = "2";
  EXPECT_EQ(Read(by_node).gpus_unclear, unclear);  // whole nodes
  by_node["SLURM_GPUS_PER_TASK"] = "3";
  EXPECT_THAT(Rejection(by_node),
              HasSubstr("SLURM_GPUS_ON_NODE=4 on n1 contradicts SLURM_GPUS_PER_TASK=3"));
}

TEST(SlurmAllocation, SaysThatOnlySlurmKnowsTheGpusOfSallocAndOfOtherComponents) {
  const Allocation shell = Read(ReadEnvironmentFile("salloc-N2-gres-gpu-2.txt")[0].variables);
  EXPECT_THAT(shell.gpus_unclear, HasSubstr("no variable says how many GPUs n1 has"));
  const Allocation batch = Read(ReadEnvironmentFile("hetjob-1x4gpu-2x2gpu.txt")[0].variables);
  EXPECT_THAT(batch.gpus_unclear, HasSubstr("no variable says how many GPUs n2 has"));
}

TEST(SlurmAllocation, KnowsThatNoGpuWasGranted) {
  const Environment none =
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
  Environment shell = BatchWith({{"SLURM_JOB_NODELIST", "n1"},
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
  Environment shell = BatchWith(
      {{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PTY_PORT", "4711"}});
  EXPECT_TRUE(Read(shell).in_step);
  shell["SLURM_PROCID"] = "1";
  EXPECT_THAT(Rejection(shell), HasSubstr("as task 1 of SLURM_STEP_NUM_TASKS=2"));
}

TEST(SlurmAllocation, KnowsAStepOfSrunThoughSomeOfItsVariablesAreOdd) {
  EXPECT_THAT(Rejection(BatchWith({{"SLURM_STEP_ID", "new.0"}, {"SLURM_STEP_NUM_TASKS", "2"}})),
              HasSubstr("as task 0 of SLURM_STEP_NUM_TASKS=2"));
  EXPECT_THAT(
      Rejection(BatchWith(
          {{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "some"}, {"SLURM_NTASKS", "4"}})),
      HasSubstr("as task 0 of SLURM_NTASKS=4"));
  EXPECT_THAT(Rejection(BatchWith({{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "1"}})),
              HasSubstr("as task 1 of several"));
  EXPECT_TRUE(Read(BatchWith({{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "0"}})).in_step);
}

TEST(SlurmAllocation, RejectsMalformedNumbersWhereTheyAreNeeded) {
  EXPECT_THAT(Rejection(BatchWith({{"SLURM_JOB_ID", "abc"}})), HasSubstr("SLURM_JOB_ID=abc"));
  EXPECT_THAT(Rejection(BatchWith({{"SLURM_HET_SIZE", "100000"}})), HasSubstr("SLURM_HET_SIZE"));
  for (const char* value : {"x", "-1", "4 ", "99999999999"}) {
    EXPECT_THAT(Rejection(BatchWith({{"SLURM_NTASKS", value}})),
                HasSubstr("SLURM_NTASKS=" + std::string(value)));
    EXPECT_THAT(Rejection(BatchWith({{"SLURM_NTASKS_PER_NODE", value}})),
                HasSubstr("SLURM_NTASKS_PER_NODE=" + std::string(value)));
  }
  // Which node has how many is said by nothing else.
  EXPECT_THAT(Rejection(BatchWith({{"SLURM_NTASKS", "5"}, {"SLURM_TASKS_PER_NODE", "4(x"}})),
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
  Environment here = BatchWith({{"SLURM_GPUS_ON_NODE", "some"}});
  EXPECT_EQ(Read(here).gpus_unclear, "");  // SLURM_JOB_GPUS says it
  here.erase("SLURM_JOB_GPUS");
  here.erase("CUDA_VISIBLE_DEVICES");
  EXPECT_FALSE(Read(here).nodes[0].gpus);
  EXPECT_THAT(Read(here).gpus_unclear, HasSubstr("SLURM_GPUS_ON_NODE=some"));
  // Said by another variable for all nodes.
  EXPECT_EQ(Read(BatchWith({{"SLURM_GPUS_PER_NODE", "4"}, {"SLURM_GPUS", "x"}})).gpus_unclear, "");
}

TEST(SlurmAllocation, ReadsWhatATaskGetsFromItsTres) {
  const Environment tasks = {{"SLURM_NTASKS", "5"}, {"SLURM_TASKS_PER_NODE", "4,1"}};
  for (const char* value : {"gres/gpu=1", "gres/gpu:v100=1", "cpu=2,gres/gpu=1", "cpu:2,gres:gpu:1",
                            "gres:gpu:v100:1", "license/x=3,gres/gpu:1"}) {
    Environment environment = BatchWith(tasks);
    environment["SLURM_TRES_PER_TASK"] = value;
    const Allocation allocation = Read(environment);
    EXPECT_EQ(allocation.nodes[1].gpus, 1) << value;
    const bool has_cpus = std::string(value).starts_with("cpu");
    EXPECT_EQ(allocation.cpus_per_rank.value_or(kUnknown), has_cpus ? 2 : kUnknown) << value;
  }
  Environment other = BatchWith(tasks);
  other["SLURM_TRES_PER_TASK"] = "gres/gpumem=8,gres/fpga=3";
  EXPECT_FALSE(Read(other).nodes[1].gpus);
  other["SLURM_TRES_PER_TASK"] = "cpu=9,gres/gpu=4";
  other["SLURM_CPUS_PER_TASK"] = "2";
  other["SLURM_GPUS_PER_TASK"] = "1";
  EXPECT_EQ(Read(other).nodes[1].gpus, 1);
  EXPECT_EQ(Read(other).cpus_per_rank, 2);
}

TEST(SlurmAllocation, TakesOneCpuPerTaskAsWell) {
  const Environment one = {{"SLURM_CPUS_PER_TASK", "1"}, {"SLURM_TRES_PER_TASK", "cpu=9"}};
  EXPECT_EQ(Read(BatchWith(one)).cpus_per_rank, 1);
}

TEST(SlurmAllocation, ReadsAHeterogeneousJobOfOneComponent) {
  Environment het = BatchWith({{"SLURM_HET_SIZE", "1"}, {"SLURM_JOB_NODELIST_HET_GROUP_0", "n1"}});
  EXPECT_EQ(Read(het).nodes.size(), 1U);
  het["SLURM_HET_SIZE"] = "0";
  EXPECT_THAT(Rejection(het), HasSubstr("SLURM_HET_SIZE=0: expected 1 to"));
}

TEST(SlurmAllocation, RejectsAbsurdCounts) {
  EXPECT_EQ(Read(BatchWith({{"SLURM_NTASKS_PER_NODE", "524288"}})).ranks, rankfile::kMaxRanks);
  EXPECT_THAT(Rejection(BatchWith({{"SLURM_NTASKS_PER_NODE", "2000000000"}})),
              HasSubstr("4000000000 tasks"));
  Environment salloc = BatchWithout(
      {"SLURMD_NODENAME", "SLURM_GPUS_ON_NODE", "SLURM_JOB_GPUS", "CUDA_VISIBLE_DEVICES"});
  salloc["SLURM_NTASKS_PER_NODE"] = "5";
  salloc["SLURM_GPUS_PER_TASK"] = "1000";
  EXPECT_THAT(Rejection(salloc), HasSubstr("n1 would have 5000 GPUs"));
}

TEST(SlurmAllocation, ShowsBinaryValuesAsOneLine) {
  const std::string message = Rejection(BatchWith({{"SLURM_JOB_ID", "2\n\x01"}}));
  EXPECT_THAT(message, HasSubstr("SLURM_JOB_ID=2??"));
}

TEST(SlurmAllocation, RejectsComponentsWithDifferentCpusPerTask) {
  Environment het = ReadBatchEnvironment("hetjob-1x4gpu-2x2gpu.txt");
  het["SLURM_CPUS_PER_TASK_HET_GROUP_0"] = "2";
  het["SLURM_CPUS_PER_TASK_HET_GROUP_1"] = "4";
  EXPECT_THAT(Rejection(het), AllOf(HasSubstr("SLURM_CPUS_PER_TASK_HET_GROUP_1=4"),
                                    HasSubstr("2 CPUs per task of another component")));
}

TEST(SlurmAllocation, RejectsAHostInTwoComponents) {
  Environment het = ReadBatchEnvironment("hetjob-1x4gpu-2x2gpu.txt");
  het["SLURM_JOB_NODELIST_HET_GROUP_0"] = "n2";
  EXPECT_THAT(Rejection(het), HasSubstr("n2 is in components 0 and 1 of the heterogeneous job"));
}

// An environment in which scontrol does `commands`.
class Scontrol {
 public:
  explicit Scontrol(const std::string& commands) { directory_.WriteScript("scontrol", commands); }

  Environment With(Environment variables = {}) const {
    variables["PATH"] = directory_.path().string() + ":/usr/bin:/bin";
    return variables;
  }

 private:
  const TemporaryDirectory directory_;
};

// The refusal where scontrol does `commands`; "" where there is none.
std::string RejectionWith(const std::string& commands) {
  const Scontrol scontrol(commands);
  Allocation allocation{.job_id = "7", .gpus_unclear = "no variable says it"};
  allocation.nodes.emplace_back().host = "n1";
  return tests::Rejection<LaunchError>(EX_CONFIG,
                                       [&] { QuerySlurmForGpus(scontrol.With(), &allocation); });
}

// The slots of n1 and n2, which had two each, where they have so many GPUs.
std::vector<int> SlotsWith(int gpus_of_n1, int gpus_of_n2, const std::string& gpus_per_task) {
  const auto line = [](const std::string& host, int gpus) {
    return "echo '  Nodes=" + host + " CPU_IDs=0 Mem=1 GRES=gpu:" + std::to_string(gpus) + "';";
  };
  const Scontrol scontrol("echo JobId=7;" + line("n1", gpus_of_n1) + line("n2", gpus_of_n2));
  Allocation allocation{.job_id = "7", .gpus_unclear = "no variable says it"};
  for (const char* host : {"n1", "n2"}) {
    allocation.nodes.emplace_back().host = host;
    allocation.nodes.back().slots = 2;
  }
  QuerySlurmForGpus(scontrol.With({{"SLURM_GPUS_PER_TASK", gpus_per_task}}), &allocation);
  EXPECT_EQ(allocation.nodes[0].gpus, gpus_of_n1);
  return {allocation.nodes[0].slots.value_or(-1), allocation.nodes[1].slots.value_or(-1)};
}

TEST(QuerySlurmForGpus, RejectsAJobThatIsOver) {
  const std::string hint =
      ": leave this shell, or unset its SLURM_ variables: unset \"${!SLURM_@}\"";
  EXPECT_EQ(RejectionWith("echo 'JobId=7 JobName=x'; echo '  JobState=TIMEOUT Reason=TimeLimit'; "
                          "echo '  Nodes=n1 CPU_IDs=0 Mem=1 GRES='"),
            "job 7 is over (TIMEOUT)" + hint);
  EXPECT_EQ(RejectionWith("echo 'slurm_load_jobs error: Invalid job id specified'; exit 1"),
            "job 7 is over (Slurm no longer knows it)" + hint);
}

TEST(QuerySlurmForGpus, TellsWhyThereIsNoAnswer) {
  EXPECT_EQ(
      RejectionWith("echo 'slurm_load_jobs error: Unable to contact slurm controller'; exit 1"),
      "no variable says it; asking scontrol show job: slurm_load_jobs error: Unable to contact "
      "slurm controller");
  EXPECT_EQ(RejectionWith("echo 'JobId=7 JobName=x'; echo '  JobState=RUNNING'; "
                          "echo '  Nodes=n1 CPU_IDs=0 Mem=1 GRES=gpu:1'"),
            "");
}

TEST(QuerySlurmForGpus, PutsTasksWhereTheirGpusAre) {
  using Slots = std::vector<int>;
  EXPECT_EQ(SlotsWith(1, 3, "1"), (Slots{1, 3}));
  EXPECT_EQ(SlotsWith(6, 2, "2"), (Slots{3, 1}));
  EXPECT_EQ(SlotsWith(1, 4, "1"), (Slots{1, 3}));
  EXPECT_EQ(SlotsWith(4, 4, "1"), (Slots{2, 2}));  // whole nodes: more GPUs than the tasks need
  EXPECT_EQ(SlotsWith(3, 5, "2"), (Slots{2, 2}));  // of 8 GPUs only 6 are in pairs
  EXPECT_EQ(SlotsWith(1, 2, "1"), (Slots{2, 2}));
  EXPECT_EQ(SlotsWith(0, 4, "1"), (Slots{2, 2}));
  EXPECT_EQ(SlotsWith(1, 3, ""), (Slots{2, 2}));
}

TEST(QuerySlurmForAddress, SaysWhatScontrolSays) {
  const Scontrol scontrol("echo \"NodeName=$3\"; echo '   NodeAddr=10.1.2.3 NodeHostName=x7'");
  EXPECT_EQ(QuerySlurmForAddress("n1", scontrol.With()), "10.1.2.3");
  const Scontrol silent("echo 'NodeAddr=10.1.2.3'; exit 1");
  EXPECT_EQ(QuerySlurmForAddress("n1", silent.With()), "");
}

// The allocations of the real environments of tests/fixtures/slurm-env, which have every variable
// that a version of Slurm sets.

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
