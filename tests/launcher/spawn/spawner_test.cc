// SPDX-License-Identifier: Apache-2.0

#include "launcher/spawn/spawner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/base/error.h"
#include "support/quoting.h"

namespace launcher {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// ranks[r] is the node of rank r.
Job JobOf(const std::vector<int>& nodes_of_ranks) {
  Job job;
  for (const int node : nodes_of_ranks) {
    RankPlan rank;
    rank.rank = static_cast<int>(job.plan.ranks.size());
    rank.node = node;
    while (job.plan.nodes.size() <= static_cast<std::size_t>(node)) {
      job.plan.nodes.emplace_back().host = "n" + std::to_string(job.plan.nodes.size() + 1);
    }
    NodePlan& own = job.plan.nodes[static_cast<std::size_t>(node)];
    rank.local_rank = static_cast<int>(own.ranks.size());
    own.ranks.push_back(rank.rank);
    job.plan.ranks.push_back(rank);
  }
  job.program = {"python", "train.py", "--name=a b"};
  job.shim = "/opt/libexec/ddlrun/ddlrun-rank";
  job.run_directory = "/tmp/ddlrun.abc";
  job.plan_rankfile = "/tmp/ddlrun.abc/RANKFILE";
  job.mpirun = "/usr/bin/mpirun";
  job.mpi_type = "pmix";
  job.environment = {{"PATH", "/bin"}, {"HOSTNAME", "n1"}, {"CUDA_VISIBLE_DEVICES", "0"}};
  job.rank_settings = {{"DDLRUN_RANK_JOB", "{}"}, {"DDL_HOST_PORT", "2200"}};
  return job;
}

std::string MpirunLine(const Job& job) {
  const std::vector<ChildCommand> commands = MakeMpirunCommands(job);
  EXPECT_EQ(commands.size(), 1U);
  EXPECT_EQ(commands[0].kind, ChildCommand::Kind::kMpirun);
  return support::QuoteCommand(commands[0].argv);
}

TEST(MpirunSpawner, OneMachineInheritsItsEnvironment) {
  EXPECT_EQ(MpirunLine(JobOf({0, 0})),
            "/usr/bin/mpirun --hostfile /tmp/ddlrun.abc/HOSTFILE --map-by slot --bind-to none -n 2 "
            "-x DDLRUN_RANK_JOB -x DDL_HOST_PORT=2200 /opt/libexec/ddlrun/ddlrun-rank -- python "
            "train.py '--name=a b'");
}

TEST(MpirunSpawner, OneMachineHasItsFilesInTheRunDirectory) {
  Job job = JobOf({0, 0});
  const std::string variable = "OMPI_MCA_orte_tmpdir_base=/tmp/ddlrun.abc";
  EXPECT_THAT(MakeMpirunCommands(job)[0].environment, testing::Contains(variable));
  job.has_remote_ranks = true;
  EXPECT_THAT(MakeMpirunCommands(job)[0].environment, testing::Not(testing::Contains(variable)));
}

TEST(MpirunSpawner, OtherNodesGetTheEnvironmentByName) {
  Job job = JobOf({0, 0, 1, 1});
  job.has_remote_ranks = true;
  job.mpi_arguments = {"--mca", "btl", "tcp,self"};
  EXPECT_EQ(MpirunLine(job),
            "/usr/bin/mpirun --hostfile /tmp/ddlrun.abc/HOSTFILE --map-by slot --bind-to none -n 4 "
            "--mca btl tcp,self -x PATH -x DDLRUN_RANK_JOB -x DDL_HOST_PORT=2200 "
            "-x DDLRUN_PATH /opt/libexec/ddlrun/ddlrun-rank -- python train.py '--name=a b'");
}

TEST(MpirunSpawner, ALongPlanGoesByTheNamesOfItsVariables) {
  Job job = JobOf({0, 0});
  job.rank_settings = {{"DDLRUN_RANK_JOB", "first"}, {"DDLRUN_RANK_JOB_2", "second"}};
  EXPECT_THAT(MpirunLine(job),
              testing::HasSubstr(" -x DDLRUN_RANK_JOB -x DDLRUN_RANK_JOB_2 /opt/libexec/"));
  EXPECT_THAT(MakeMpirunCommands(job)[0].environment,
              testing::Contains("DDLRUN_RANK_JOB_2=second"));
}

TEST(MpirunSpawner, AskedExportsGoThoughTheyAreDenied) {
  Job job = JobOf({0, 1});
  job.has_remote_ranks = true;
  job.asked_exports = {"CUDA_VISIBLE_DEVICES"};
  EXPECT_THAT(MakeMpirunCommands(job)[0].argv, Contains("CUDA_VISIBLE_DEVICES"));
  EXPECT_THAT(MakeMpirunCommands(job)[0].argv, testing::Not(Contains("HOSTNAME")));
}

TEST(MpirunSpawner, CyclicOrderIsMappedByNodeAlsoWhenUneven) {
  EXPECT_THAT(MpirunLine(JobOf({0, 1, 0, 1, 0})),
              testing::HasSubstr("--map-by node --bind-to none"));
}

TEST(MpirunSpawner, NeedsTheRankfileWhereItsOwnNodeIsNotTheFirst) {
  Job job = JobOf({0, 0, 1, 1});
  const auto has_rankfile = [&job](bool in_slurm, const std::string& here) {
    job.in_slurm = in_slurm;
    job.environment["SLURMD_NODENAME"] = here;
    return MpirunLine(job).find("--rankfile /tmp/ddlrun.abc/RANKFILE") != std::string::npos;
  };
  EXPECT_TRUE(has_rankfile(true, "n2"));
  EXPECT_FALSE(has_rankfile(true, "n1"));
  EXPECT_FALSE(has_rankfile(true, "n3"));  // which has no ranks
  EXPECT_FALSE(has_rankfile(false, "n2"));
}

TEST(MpirunSpawner, AnyOtherOrderNeedsTheRankfile) {
  EXPECT_THAT(MpirunLine(JobOf({0, 1, 1, 0})),
              testing::HasSubstr("HOSTFILE --rankfile /tmp/ddlrun.abc/RANKFILE -n 4"));
}

TEST(MpirunSpawner, TheUsersRankfileIsGivenAsItIsAndBindsByItself) {
  Job job = JobOf({0, 0});
  job.rankfile = "my.rankfile";
  EXPECT_THAT(MpirunLine(job), testing::HasSubstr("HOSTFILE --rankfile my.rankfile -n 2"));
}

TEST(MpirunSpawner, RootAndSlurmNeedMore) {
  Job job = JobOf({0});
  job.is_root = true;
  job.in_slurm = true;
  EXPECT_THAT(
      MpirunLine(job),
      testing::StartsWith("/usr/bin/env SLURM_NODELIST=n1 SLURM_TASKS_PER_NODE=1 "
                          "/usr/bin/mpirun --allow-run-as-root --map-by slot --bind-to none -n 1"));
}

TEST(MpirunSpawner, HostsOutsideTheJobAreNotReachedBySlurm) {
  Job job = JobOf({0, 1});
  job.environment["SLURM_JOB_ID"] = "7";
  EXPECT_THAT(MpirunLine(job),
              testing::StartsWith("/usr/bin/mpirun --hostfile /tmp/ddlrun.abc/HOSTFILE --mca ras "
                                  "^slurm --mca plm ^slurm --map-by slot"));
}

// Under PRRTE, the runtime of Open MPI 5.
Job PrrteJobOf(const std::vector<int>& nodes_of_ranks) {
  Job job = JobOf(nodes_of_ranks);
  job.mpi_runtime = MpiRuntime::kPrrte;
  return job;
}

TEST(MpirunSpawner, PrrteTakesTheSameWhereItMapsByItself) {
  EXPECT_EQ(MpirunLine(PrrteJobOf({0, 0, 1, 1})), MpirunLine(JobOf({0, 0, 1, 1})));
  EXPECT_EQ(MpirunLine(PrrteJobOf({0, 1, 0})), MpirunLine(JobOf({0, 1, 0})));
}

TEST(MpirunSpawner, PrrteTakesRankfilesAsAMapping) {
  EXPECT_THAT(MpirunLine(PrrteJobOf({0, 1, 1, 0})),
              testing::HasSubstr(
                  "HOSTFILE --map-by rankfile:FILE=/tmp/ddlrun.abc/RANKFILE --bind-to none -n 4"));
  Job job = PrrteJobOf({0, 0});
  job.rankfile = "my.rankfile";
  EXPECT_THAT(MpirunLine(job),
              testing::HasSubstr(
                  "HOSTFILE --map-by rankfile:FILE=my.rankfile --bind-to :overload-allowed -n 2"));
}

TEST(MpirunSpawner, PrrteKeepsItsFilesOnThisMachineInTheRunDirectory) {
  const std::string variable = "PRTE_MCA_prte_local_tmpdir_base=/tmp/ddlrun.abc";
  Job job = PrrteJobOf({0, 1});
  job.has_remote_ranks = true;
  EXPECT_THAT(MakeMpirunCommands(job)[0].environment, Contains(variable));
  job.environment["PRTE_MCA_prte_tmpdir_base"] = "/scratch";
  EXPECT_THAT(MakeMpirunCommands(job)[0].environment, testing::Not(Contains(variable)));
}

TEST(MpirunSpawner, PrrteHasParametersOfItsOwn) {
  Job job = PrrteJobOf({0, 1});
  job.environment["SLURM_JOB_ID"] = "7";
  EXPECT_THAT(MpirunLine(job), testing::HasSubstr("HOSTFILE --prtemca ras ^slurm --prtemca plm "
                                                  "^slurm --map-by slot"));
  job.in_slurm = true;
  for (NodePlan& node : job.plan.nodes) node.gpus = 1;
  job.environment["SLURMD_NODENAME"] = "n1";
  EXPECT_THAT(MpirunLine(job),
              testing::StartsWith(
                  "/usr/bin/env "
                  "'SLURM_NODELIST=n[1-2]' 'SLURM_TASKS_PER_NODE=1(x2)' "
                  "/usr/bin/mpirun --prtemca plm_slurm_args --gpus-per-node=1 --map-by slot"));
  job.mpi_arguments = {"--prtemca", "plm_slurm_args", "--exact"};
  EXPECT_THAT(MpirunLine(job), testing::Not(testing::HasSubstr("--gpus-per-node")));
}

TEST(MpirunSpawner, SettingsAreInTheEnvironmentOfMpirunToo) {
  EXPECT_THAT(MakeMpirunCommands(JobOf({0}))[0].environment,
              ElementsAre("CUDA_VISIBLE_DEVICES=0", "DDLRUN_PATH=/bin", "DDLRUN_RANK_JOB={}",
                          "DDL_HOST_PORT=2200", "HOSTNAME=n1",
                          "OMPI_MCA_orte_tmpdir_base=/tmp/ddlrun.abc", "PATH=/bin"));
}

TEST(MpirunSpawner, ThePathOfTheRanksIsTheOneThatTheUserSets) {
  Job job = JobOf({0, 1});
  job.has_remote_ranks = true;
  job.rank_settings["PATH"] = "/opt/x:/bin";
  EXPECT_THAT(MakeMpirunCommands(job)[0].environment, Contains("DDLRUN_PATH=/opt/x:/bin"));
  EXPECT_THAT(MpirunLine(job), testing::HasSubstr(" -x PATH=/opt/x:/bin -x DDLRUN_PATH "));
  // What mpirun itself is told to set is left to it.
  for (const char* word : {"PATH", "PATH=/opt/y"}) {
    job.mpi_arguments = {"-x", word};
    EXPECT_THAT(MakeMpirunCommands(job)[0].environment,
                testing::Not(Contains(testing::StartsWith("DDLRUN_PATH="))))
        << word;
    EXPECT_THAT(MpirunLine(job), testing::Not(testing::HasSubstr("DDLRUN_PATH"))) << word;
  }
  job.mpi_arguments = {"-x", "PATHS=/opt/y", "--mca", "PATH", "1"};
  EXPECT_THAT(MakeMpirunCommands(job)[0].environment, Contains("DDLRUN_PATH=/opt/x:/bin"));
}

TEST(LocalSpawner, StartsOneShimPerRank) {
  const std::vector<ChildCommand> commands = MakeLocalCommands(JobOf({0, 0}));
  ASSERT_EQ(commands.size(), 2U);
  EXPECT_EQ(commands[1].rank, 1);
  EXPECT_THAT(commands[1].argv, ElementsAre("/opt/libexec/ddlrun/ddlrun-rank", "--rank", "1", "--",
                                            "python", "train.py", "--name=a b"));
  EXPECT_THAT(commands[1].environment, Contains("DDL_HOST_PORT=2200"));
}

TEST(LocalSpawner, RefusesASecondNode) {
  EXPECT_THROW(MakeLocalCommands(JobOf({0, 1})), LaunchError);
}

TEST(LocalSpawner, RefusesAnotherMachine) {
  Job job = JobOf({0});
  job.has_remote_ranks = true;
  EXPECT_THROW(MakeLocalCommands(job), LaunchError);
}

std::string SrunLine(Job job) {
  job.srun = "/usr/bin/srun";
  if (job.hosts_of_job.empty()) {
    for (const NodePlan& node : job.plan.nodes) job.hosts_of_job.push_back(node.host);
  }
  const std::vector<ChildCommand> commands = MakeSrunCommands(job);
  EXPECT_EQ(commands.size(), 1U);
  EXPECT_EQ(commands[0].kind, ChildCommand::Kind::kSrun);
  return support::QuoteCommand(commands[0].argv);
}

TEST(SrunSpawner, NodesAlikeAreFilledInSlurmsOwnOrder) {
  Job job = JobOf({0, 0, 1, 1});
  for (NodePlan& node : job.plan.nodes) node.gpus = 4;
  EXPECT_EQ(
      SrunLine(job),
      "/usr/bin/srun --mpi=pmix --nodes=2 --ntasks=4 --ntasks-per-node=2 "
      "--distribution=block --gpus-per-node=4 --overcommit --kill-on-bad-exit=1 "
      "--export=ALL --input=0 /opt/libexec/ddlrun/ddlrun-rank -- python train.py '--name=a b'");
}

TEST(SrunSpawner, AnyOtherOrderIsByTheTaskfile) {
  const char* arbitrary = "--distribution=arbitrary --nodelist=/tmp/ddlrun.abc/TASKFILE";
  EXPECT_THAT(SrunLine(JobOf({0, 1, 0, 1})), testing::HasSubstr(arbitrary));
  // Slurm 24.11: "--nodes is incompatible with --distribution=arbitrary".
  EXPECT_THAT(SrunLine(JobOf({0, 1, 0, 1})), testing::Not(testing::HasSubstr("--nodes")));
  EXPECT_THAT(SrunLine(JobOf({0, 0, 0, 1})), testing::HasSubstr(arbitrary));
  Job one_node_left_out = JobOf({0, 0, 1, 1});
  one_node_left_out.hosts_of_job = {"n1", "n2", "n3"};
  EXPECT_THAT(SrunLine(one_node_left_out), testing::HasSubstr(arbitrary));
  Job nodes_swapped = JobOf({0, 0, 1, 1});
  nodes_swapped.hosts_of_job = {"n2", "n1"};
  EXPECT_THAT(SrunLine(nodes_swapped), testing::HasSubstr(arbitrary));
}

TEST(SrunSpawner, UnevenGpusAreATotal) {
  Job job = JobOf({0, 0, 1});
  job.plan.nodes[0].gpus = 2;
  job.plan.nodes[1].gpus = 1;
  EXPECT_THAT(SrunLine(job), testing::HasSubstr(" --gpus=3 "));
}

TEST(SrunSpawner, TaskfileHasALinePerRank) {
  EXPECT_EQ(TaskfileText(JobOf({0, 1, 0}).plan), "n1\nn2\nn1\n");
}

TEST(SrunSpawner, EachComponentOfAHeterogeneousJobHasItsPart) {
  Job job = JobOf({0, 0, 1, 2});
  job.plan.nodes[0].gpus = 2;
  for (const std::size_t node : {1, 2}) {
    job.plan.nodes[node].component = 1;
    job.plan.nodes[node].gpus = 1;
  }
  const std::string line = SrunLine(job);
  EXPECT_THAT(line, testing::HasSubstr("srun --het-group=0 --mpi=pmix --nodes=1 --ntasks=2 "
                                       "--ntasks-per-node=2 --distribution=block "
                                       "--gpus-per-node=2 "));
  EXPECT_THAT(line, testing::HasSubstr("'--name=a b' : --het-group=1 --mpi=pmix --nodes=2 "
                                       "--ntasks=2 --ntasks-per-node=1 "));
  job.environment["SLURM_JOB_NUM_NODES"] = "1";
  job.hosts_of_job = {"n1", "n2", "n3"};
  EXPECT_THAT(MakeSrunCommands(job)[0].environment,
              testing::Not(Contains("SLURM_JOB_NUM_NODES=1")));
  for (NodePlan& node : job.plan.nodes) node.component = 0;
  EXPECT_THAT(MakeSrunCommands(job)[0].environment, Contains("SLURM_JOB_NUM_NODES=1"));
}

TEST(SrunSpawner, StandardInputIsThatOfTheFirstRankAlone) {
  Job job = JobOf({0, 1});
  EXPECT_THAT(SrunLine(job), testing::HasSubstr(" --input=0 "));
  job.plan.nodes[1].component = 1;
  EXPECT_THAT(SrunLine(job), testing::ContainsRegex("--input=0 .* : .* --input=none "));
}

TEST(SrunSpawner, HeterogeneousJobsHaveNoOtherOrder) {
  Job job = JobOf({0, 1, 0, 1});
  job.plan.nodes[1].component = 1;
  EXPECT_THROW(SrunLine(job), LaunchError);
}

TEST(SrunSpawner, InsideAStepResourcesAreShared) {
  Job job = JobOf({0});
  EXPECT_THAT(SrunLine(job), testing::Not(testing::HasSubstr("--overlap")));
  job.in_step = true;
  EXPECT_THAT(SrunLine(job), testing::HasSubstr("--overlap"));
}

TEST(SrunSpawner, ArgumentsOfTheUserComeBeforeItsOwn) {
  Job job = JobOf({0});
  job.srun_arguments = {"--container-image=a b", "-v"};
  EXPECT_THAT(SrunLine(job), testing::HasSubstr("srun '--container-image=a b' -v --mpi="));
}

TEST(SrunSpawner, AfterANodeIsLostTheStepBeforeMayStillHoldGpusAndMemory) {
  Job job = JobOf({0});
  EXPECT_THAT(SrunLine(job), testing::Not(testing::HasSubstr("--mem")));
  job.has_lost_nodes = true;
  EXPECT_THAT(SrunLine(job), testing::HasSubstr("--overlap --mem=0"));
}

TEST(SrunSpawner, TheBatchScriptsTasksAreNotThoseOfTheStep) {
  Job job = JobOf({0});
  job.environment = {{"SLURM_GPUS_PER_TASK", "1"}, {"SLURM_NTASKS", "9"}, {"SLURM_JOB_ID", "7"}};
  EXPECT_THAT(MakeSrunCommands(job)[0].environment,
              ElementsAre("DDLRUN_RANK_JOB={}", "DDL_HOST_PORT=2200", "SLURM_CPU_BIND=none",
                          "SLURM_JOB_ID=7", "SLURM_PMIX_FENCE=ring"));
}

TEST(SrunSpawner, NothingThatSrunReadsFromTheEnvironmentPlacesOrHidesTheRanks) {
  Job job = JobOf({0});
  job.environment.clear();
  for (const char* name :
       {"SLURM_TRES_PER_TASK", "SRUN_CPUS_PER_TASK", "SLURM_CPUS_PER_TASK", "SLURM_SPREAD_JOB",
        "SLURM_USE_MIN_NODES", "SLURM_STDOUTMODE", "SLURM_STDERRMODE", "SLURM_EXPORT_ENV",
        "SRUN_EXPORT_ENV", "SRUN_OUTPUT", "SRUN_ERROR", "SLURM_SRUN_MULTI",
        "SLURM_EXTERNAL_LAUNCHER", "SLURM_WHOLE", "SLURM_DIST_PLANESIZE",
        "SLURM_ARBITRARY_NODELIST", "SLURM_NO_KILL", "SLURM_BCAST"}) {
    job.environment[name] = "x";
  }
  job.environment["SLURM_STEPMGR"] = "n1";        // Slurm's own: srun asks there for the step
  job.environment["SLURM_TASK_PROLOG"] = "/bin";  // the user's wish
  EXPECT_THAT(MakeSrunCommands(job)[0].environment,
              ElementsAre("DDLRUN_RANK_JOB={}", "DDL_HOST_PORT=2200", "SLURM_CPU_BIND=none",
                          "SLURM_PMIX_FENCE=ring", "SLURM_STEPMGR=n1", "SLURM_TASK_PROLOG=/bin"));
}

TEST(MpirunSpawner, TheSrunOfItsDaemonsIsToldNothingButTheirGpus) {
  Job job = JobOf({0, 1});
  job.in_slurm = true;
  job.environment = {{"SLURM_CPUS_PER_TASK", "4"},
                     {"SLURM_NO_KILL", "1"},
                     {"SLURM_GPUS_PER_NODE", "2"},
                     {"SLURM_JOB_ID", "7"}};
  const std::vector<std::string> environment = MakeMpirunCommands(job)[0].environment;
  EXPECT_THAT(environment, Contains("SLURM_GPUS_PER_NODE=2"));
  EXPECT_THAT(environment, Contains("SLURM_JOB_ID=7"));
  EXPECT_THAT(environment, testing::Not(Contains("SLURM_CPUS_PER_TASK=4")));
  EXPECT_THAT(environment, testing::Not(Contains("SLURM_NO_KILL=1")));
  job.in_slurm = false;
  EXPECT_THAT(MakeMpirunCommands(job)[0].environment, Contains("SLURM_NO_KILL=1"));
}

TEST(SrunSpawner, GivesTheRanksThePmiThatWasChosen) {
  for (const char* type : {"none", "pmi2", "pmix_v4"}) {
    Job job = JobOf({0, 1});
    job.mpi_type = type;
    EXPECT_THAT(SrunLine(job), testing::HasSubstr("srun --mpi=" + std::string(type) + " "));
    EXPECT_EQ(testing::Matches(Contains(testing::StartsWith("SLURM_PMIX_FENCE=")))(
                  MakeSrunCommands(job)[0].environment),
              std::string(type).starts_with("pmix"));
  }
}

TEST(SrunSpawner, FencesOfPmixGoRoundARingUnlessTheUserSaysElse) {
  Job job = JobOf({0, 1});
  EXPECT_THAT(MakeSrunCommands(job)[0].environment, Contains("SLURM_PMIX_FENCE=ring"));
  job.environment = {{"SLURM_PMIX_FENCE", "tree"}};
  EXPECT_THAT(MakeSrunCommands(job)[0].environment, Contains("SLURM_PMIX_FENCE=tree"));
}

TEST(FindSpawner, KnowsThoseThatOptionsMayName) {
  for (const char* name : {"srun", "mpirun", "local"}) EXPECT_EQ(FindSpawner(name).name, name);
  EXPECT_THROW(FindSpawner("ssh"), LaunchError);
}

}  // namespace
}  // namespace launcher
