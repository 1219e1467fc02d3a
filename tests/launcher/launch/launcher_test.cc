// SPDX-License-Identifier: Apache-2.0

#include "launcher/launch/launcher.h"

#include "launcher/base/error.h"
#include "support/quoting.h"
#include "tests/launcher/launch/job_of_ranks.h"
#include "tests/support/temporary_directory.h"

namespace launcher {
namespace {

std::string MpirunLine(const LaunchRequest& job) {
  const std::vector<ChildCommand> commands = MakeMpirunCommands(job);
  EXPECT_EQ(commands.size(), 1U);
  EXPECT_EQ(commands[0].launcher, &TraitsOf("mpirun"));
  return support::QuoteCommand(commands[0].argv);
}

TEST(MpirunLauncher, OneMachineInheritsItsEnvironment) {
  EXPECT_EQ(MpirunLine(JobOf({0, 0})),
            "/usr/bin/mpirun --hostfile /tmp/ddlrun.abc/HOSTFILE --map-by slot --bind-to none -n 2 "
            "-x DDLRUN_RANK_JOB -x DDL_HOST_PORT /opt/libexec/ddlrun/ddlrun-rank -- python "
            "train.py '--name=a b'");
}

TEST(MpirunLauncher, NoValueIsOnItsCommandLine) {
  LaunchRequest job = JobOf({0, 0});
  job.rank_settings["HF_TOKEN"] = "plum";
  EXPECT_THAT(MpirunLine(job), AllOf(HasSubstr(" -x HF_TOKEN "), Not(HasSubstr("plum"))));
  EXPECT_THAT(MakeMpirunCommands(job)[0].environment, Contains("HF_TOKEN=plum"));
}

TEST(MpirunLauncher, OneMachineHasItsFilesInTheRunDirectory) {
  LaunchRequest job = JobOf({0, 0});
  const std::string variable = "OMPI_MCA_orte_tmpdir_base=/tmp/ddlrun.abc";
  EXPECT_THAT(MakeMpirunCommands(job)[0].environment, Contains(variable));
  job.has_remote_ranks = true;
  EXPECT_THAT(MakeMpirunCommands(job)[0].environment, Not(Contains(HasSubstr("tmpdir_base"))));
}

TEST(MpirunLauncher, OtherNodesGetTheEnvironmentByName) {
  LaunchRequest job = JobOf({0, 0, 1, 1});
  job.has_remote_ranks = true;
  job.mpi_arguments = {"--mca", "btl", "tcp,self"};
  EXPECT_EQ(MpirunLine(job),
            "/usr/bin/mpirun --hostfile /tmp/ddlrun.abc/HOSTFILE --map-by slot --bind-to none -n 4 "
            "--mca btl tcp,self -x PATH -x DDLRUN_RANK_JOB -x DDL_HOST_PORT "
            "-x DDLRUN_PATH /opt/libexec/ddlrun/ddlrun-rank -- python train.py '--name=a b'");
}

TEST(MpirunLauncher, ALongPlanGoesByTheNamesOfItsVariables) {
  LaunchRequest job = JobOf({0, 0});
  job.rank_settings = {{"DDLRUN_RANK_JOB", "first"}, {"DDLRUN_RANK_JOB_2", "second"}};
  EXPECT_THAT(MpirunLine(job), HasSubstr(" -x DDLRUN_RANK_JOB -x DDLRUN_RANK_JOB_2 /opt/libexec/"));
  EXPECT_THAT(MakeMpirunCommands(job)[0].environment, Contains("DDLRUN_RANK_JOB_2=second"));
}

TEST(MpirunLauncher, AskedExportsGoThoughTheyAreDenied) {
  LaunchRequest job = JobOf({0, 1});
  job.has_remote_ranks = true;
  job.requested_exports = {"CUDA_VISIBLE_DEVICES"};
  EXPECT_THAT(MakeMpirunCommands(job)[0].argv, Contains("CUDA_VISIBLE_DEVICES"));
  EXPECT_THAT(MakeMpirunCommands(job)[0].argv, Not(Contains("HOSTNAME")));
}

TEST(MpirunLauncher, CyclicOrderIsMappedByNodeAlsoWhenUneven) {
  EXPECT_THAT(MpirunLine(JobOf({0, 1, 0, 1, 0})), HasSubstr("--map-by node --bind-to none"));
}

// Between the options for Slurm and "-n": how mpirun places the ranks.
std::string MappingOf(const LaunchRequest& job) {
  const std::string line = MpirunLine(job);
  const std::size_t begin = line.find("--map-by");
  return line.substr(begin, line.find(" --bind-to") - begin);
}

TEST(MpirunLauncher, InAJobItTakesItsOwnNodeFirstAndTheOthersInSlurmsOrder) {
  struct Case {
    std::vector<int> nodes;  // n1, n2, ... of each rank
    std::vector<std::string> hosts_of_job;
    const char* here;
    const char* mapping;
  };
  const std::vector<Case> cases = {
      {{0, 0, 1, 1}, {"n1", "n2"}, "n1", "--map-by slot"},
      {{0, 0, 1, 1}, {"n1", "n2", "n3"}, "n3", "--map-by slot"},  // where no rank runs
      {{0, 0, 1, 1}, {"n1", "n2"}, "", "--map-by slot"},          // the shell of salloc
      {{0, 0, 1, 1}, {"n1", "n2"}, "n2", "--map-by seq"},
      {{0, 0, 1, 1}, {"n2", "n1"}, "n1", "--map-by slot"},
      {{0, 0, 1, 1}, {"n2", "n1"}, "n3", "--map-by seq"},
      {{0, 1, 2, 0}, {"n1", "n2", "n3"}, "n1", "--map-by node"},
      {{0, 1, 2, 0}, {"n1", "n3", "n2"}, "n1", "--map-by seq"},
      {{0, 1, 1, 0}, {"n1", "n2"}, "n1", "--map-by seq"},
  };
  for (const Case& test : cases) {
    LaunchRequest job = JobOf(test.nodes);
    job.in_slurm = true;
    job.hosts_of_job = test.hosts_of_job;
    job.environment["SLURMD_NODENAME"] = test.here;
    EXPECT_EQ(MappingOf(job), test.mapping) << test.here << " " << test.hosts_of_job.front();
  }
}

TEST(MpirunLauncher, InAJobItIsGivenTheNodesInSlurmsOrder) {
  LaunchRequest job = JobOf({0, 0, 0, 1});
  job.in_slurm = true;
  job.hosts_of_job = {"n3", "n2", "n1"};
  EXPECT_THAT(MpirunLine(job),
              StartsWith("/usr/bin/env 'OMPI_MCA_plm_slurm_args=--nodelist=n[2,1]' "
                         "'SLURM_NODELIST=n[2,1]' SLURM_TASKS_PER_NODE=1,3 "));
}

TEST(MpirunLauncher, AnyOtherOrderIsByAFileWithTheHostOfEachRank) {
  LaunchRequest job = JobOf({0, 1, 1, 0});
  EXPECT_THAT(MpirunLine(job), HasSubstr("mpirun --hostfile /tmp/ddlrun.abc/TASKFILE "
                                         "--map-by seq --bind-to none -n 4"));
  job.mpi_runtime = MpiRuntime::kPrrte;
  EXPECT_THAT(MpirunLine(job),
              HasSubstr("mpirun --hostfile /tmp/ddlrun.abc/HOSTFILE --map-by "
                        "rankfile:FILE=/tmp/ddlrun.abc/RANKFILE --bind-to none -n 4"));
}

TEST(MpirunLauncher, TheUsersRankfileIsGivenAsItIsAndBindsByItself) {
  LaunchRequest job = JobOf({0, 0});
  job.rankfile = "my.rankfile";
  EXPECT_THAT(MpirunLine(job), HasSubstr("HOSTFILE --rankfile my.rankfile -n 2"));
}

TEST(MpirunLauncher, RootAndSlurmNeedMore) {
  LaunchRequest job = JobOf({0});
  job.is_root = true;
  job.in_slurm = true;
  EXPECT_THAT(MpirunLine(job),
              StartsWith("/usr/bin/env SLURM_NODELIST=n1 SLURM_TASKS_PER_NODE=1 "
                         "/usr/bin/mpirun --allow-run-as-root --map-by slot --bind-to none -n 1"));
}

TEST(MpirunLauncher, HostsOutsideTheJobAreNotReachedBySlurm) {
  LaunchRequest job = JobOf({0, 1});
  job.environment["SLURM_JOB_ID"] = "7";
  EXPECT_THAT(MpirunLine(job),
              StartsWith("/usr/bin/mpirun --mca ras ^slurm --mca plm ^slurm --hostfile "
                         "/tmp/ddlrun.abc/HOSTFILE --map-by slot"));
}

// Under PRRTE, the runtime of Open MPI 5.
LaunchRequest PrrteJobOf(const std::vector<int>& nodes_of_ranks) {
  LaunchRequest job = JobOf(nodes_of_ranks);
  job.mpi_runtime = MpiRuntime::kPrrte;
  return job;
}

TEST(MpirunLauncher, PrrteTakesTheSameWhereItMapsByItself) {
  EXPECT_EQ(MpirunLine(PrrteJobOf({0, 0, 1, 1})), MpirunLine(JobOf({0, 0, 1, 1})));
  EXPECT_EQ(MpirunLine(PrrteJobOf({0, 1, 0})), MpirunLine(JobOf({0, 1, 0})));
}

TEST(MpirunLauncher, PrrteTakesRankfilesAsAMapping) {
  EXPECT_THAT(
      MpirunLine(PrrteJobOf({0, 1, 1, 0})),
      HasSubstr("HOSTFILE --map-by rankfile:FILE=/tmp/ddlrun.abc/RANKFILE --bind-to none -n 4"));
  LaunchRequest job = PrrteJobOf({0, 0});
  job.rankfile = "my.rankfile";
  EXPECT_THAT(
      MpirunLine(job),
      HasSubstr("HOSTFILE --map-by rankfile:FILE=my.rankfile --bind-to :overload-allowed -n 2"));
}

TEST(MpirunLauncher, PrrteKeepsItsFilesOnThisMachineInTheRunDirectory) {
  const std::string variable = "PRTE_MCA_prte_local_tmpdir_base=/tmp/ddlrun.abc";
  LaunchRequest job = PrrteJobOf({0, 1});
  job.has_remote_ranks = true;
  EXPECT_THAT(MakeMpirunCommands(job)[0].environment, Contains(variable));
  job.environment["PRTE_MCA_prte_tmpdir_base"] = "/scratch";
  EXPECT_THAT(MakeMpirunCommands(job)[0].environment, Not(Contains(variable)));
}

TEST(MpirunLauncher, PrrteHasParametersOfItsOwn) {
  LaunchRequest job = PrrteJobOf({0, 1});
  job.environment["SLURM_JOB_ID"] = "7";
  EXPECT_THAT(MpirunLine(job), HasSubstr("mpirun --prtemca ras ^slurm --prtemca plm "
                                         "^slurm --hostfile "));
  job.in_slurm = true;
  for (NodePlacement& node : job.plan.nodes) node.gpus = 1;
  job.environment["SLURMD_NODENAME"] = "n1";
  EXPECT_THAT(
      MpirunLine(job),
      StartsWith("/usr/bin/env "
                 "'SLURM_NODELIST=n[1-2]' 'SLURM_TASKS_PER_NODE=1(x2)' "
                 "/usr/bin/mpirun --prtemca plm_slurm_args --gpus-per-node=1 --map-by slot"));
  job.mpi_arguments = {"--prtemca", "plm_slurm_args", "--exact"};
  EXPECT_THAT(MpirunLine(job), Not(HasSubstr("--gpus-per-node")));
}

TEST(MpirunLauncher, SettingsAreInTheEnvironmentOfMpirunToo) {
  EXPECT_THAT(
      MakeMpirunCommands(JobOf({0}))[0].environment,
      ElementsAre("CUDA_VISIBLE_DEVICES=0", "DDLRUN_PATH=/bin", "DDLRUN_RANK_JOB={}",
                  "DDL_HOST_PORT=2200", "HOSTNAME=n1", "OMPI_MCA_ess_base_forward_signals=23",
                  "OMPI_MCA_orte_tmpdir_base=/tmp/ddlrun.abc", "PATH=/bin"));
}

TEST(MpirunLauncher, MpirunPassesTheFailureOfAPeerOn) {
  LaunchRequest job = JobOf({0});
  job.environment["OMPI_MCA_ess_base_forward_signals"] = "SIGXCPU";
  EXPECT_THAT(MakeMpirunCommands(job)[0].environment,
              Contains("OMPI_MCA_ess_base_forward_signals=SIGXCPU,23"));
  job.mpi_runtime = MpiRuntime::kPrrte;
  EXPECT_THAT(MakeMpirunCommands(job)[0].environment,
              Contains("PRTE_MCA_ess_base_forward_signals="
                       "SIGTSTP,SIGUSR1,SIGUSR2,SIGABRT,SIGALRM,SIGCONT,23"));
}

TEST(MpirunLauncher, ThePathOfTheRanksIsTheOneThatTheUserSets) {
  LaunchRequest job = JobOf({0, 1});
  job.has_remote_ranks = true;
  job.rank_settings["PATH"] = "/opt/x:/bin";
  EXPECT_THAT(MakeMpirunCommands(job)[0].environment, Contains("DDLRUN_PATH=/opt/x:/bin"));
  EXPECT_THAT(MpirunLine(job), HasSubstr(" -x PATH -x DDLRUN_PATH "));
  // What mpirun itself is told to set is left to it.
  for (const char* word : {"PATH", "PATH=/opt/y"}) {
    job.mpi_arguments = {"-x", word};
    EXPECT_THAT(MakeMpirunCommands(job)[0].environment, Not(Contains(StartsWith("DDLRUN_PATH="))))
        << word;
    EXPECT_THAT(MpirunLine(job), Not(HasSubstr("DDLRUN_PATH"))) << word;
  }
  job.mpi_arguments = {"-x", "PATHS=/opt/y", "--mca", "PATH", "1"};
  EXPECT_THAT(MakeMpirunCommands(job)[0].environment, Contains("DDLRUN_PATH=/opt/x:/bin"));
}

TEST(LocalLauncher, StartsOneShimPerRank) {
  const std::vector<ChildCommand> commands = MakeLocalCommands(JobOf({0, 0}));
  ASSERT_EQ(commands.size(), 2U);
  EXPECT_EQ(commands[1].rank, 1);
  EXPECT_THAT(commands[1].argv, ElementsAre("/opt/libexec/ddlrun/ddlrun-rank", "--rank", "1", "--",
                                            "python", "train.py", "--name=a b"));
  EXPECT_THAT(commands[1].environment, Contains("DDL_HOST_PORT=2200"));
}

TEST(LocalLauncher, RejectsASecondNode) {
  EXPECT_THROW(MakeLocalCommands(JobOf({0, 1})), LaunchError);
}

TEST(LocalLauncher, RejectsAnotherMachine) {
  LaunchRequest job = JobOf({0});
  job.has_remote_ranks = true;
  EXPECT_THROW(MakeLocalCommands(job), LaunchError);
}

TEST(MpirunLauncher, TheSrunOfItsDaemonsIsToldNothingButTheirGpus) {
  LaunchRequest job = JobOf({0, 1});
  job.in_slurm = true;
  job.environment = {{"SLURM_CPUS_PER_TASK", "4"},
                     {"SLURM_NO_KILL", "1"},
                     {"SLURM_GPUS_PER_NODE", "2"},
                     {"SLURM_JOB_ID", "7"}};
  const std::vector<std::string> environment = MakeMpirunCommands(job)[0].environment;
  EXPECT_THAT(environment, AllOf(Contains("SLURM_GPUS_PER_NODE=2"), Contains("SLURM_JOB_ID=7")));
  EXPECT_THAT(environment, Not(Contains("SLURM_CPUS_PER_TASK=4")));
  EXPECT_THAT(environment, Not(Contains("SLURM_NO_KILL=1")));
  job.in_slurm = false;
  EXPECT_THAT(MakeMpirunCommands(job)[0].environment, Contains("SLURM_NO_KILL=1"));
}

TEST(MpirunLauncher, ItsDaemonsShareWhatAnotherStepHas) {
  const auto shares = [](bool in_slurm, bool in_step, bool has_lost_nodes) {
    LaunchRequest job = JobOf({0, 1});
    job.in_slurm = in_slurm;
    job.in_step = in_step;
    job.has_lost_nodes = has_lost_nodes;
    return testing::Value(MakeMpirunCommands(job)[0].environment, Contains("SLURM_OVERLAP=1"));
  };
  EXPECT_FALSE(shares(true, false, false));
  EXPECT_TRUE(shares(true, true, false));
  EXPECT_TRUE(shares(true, false, true));
  EXPECT_FALSE(shares(false, true, true));
}

TEST(FindLauncher, KnowsThoseThatOptionsMayName) {
  for (const char* name : {"srun", "mpirun", "local"}) EXPECT_EQ(FindLauncher(name).name, name);
  EXPECT_THROW(FindLauncher("ssh"), LaunchError);
}

TEST(PlainPath, HasNeitherColonNorDash) {
  const TemporaryDirectory directory;
  for (const std::string name : {"my-ranks", "my:ranks", "ranks"}) {
    const std::string path = directory.Write(name, "rank of " + name);
    const PlainPath plain(path);
    EXPECT_THAT(plain.path(), Not(testing::ContainsRegex("[:-]")));
    EXPECT_EQ(tests::TextOf(plain.path()), "rank of " + name);
    EXPECT_EQ(tests::TextOf(plain.path()), "rank of " + name);  // as often as one likes
  }
}

TEST(PlainPath, IsClosedAtItsEnd) {
  const TemporaryDirectory directory;
  const std::string path = directory.Write("plain-path", "ranks");
  std::string plain;
  {
    const PlainPath open(path);
    plain = open.path();
    EXPECT_TRUE(fs::exists(plain));
  }
  EXPECT_FALSE(fs::exists(plain));
}

TEST(PlainPath, LeavesAPathAloneThatNeedsNoneOrIsNotThere) {
  EXPECT_EQ(PlainPath("ranks.txt").path(), "ranks.txt");
  EXPECT_EQ(PlainPath("/nonexistent/my-ranks").path(), "/nonexistent/my-ranks");
}

bool MayHide(const std::vector<std::string>& arguments, const Environment& environment = {}) {
  LaunchRequest job{.environment = environment, .mpi_arguments = arguments};
  return MakeMpirunCommands(job)[0].may_hide_events;
}

TEST(HiddenReports, ByArgumentsOfMpirunThatSendTheOutputElsewhere) {
  EXPECT_FALSE(MayHide({}));
  EXPECT_FALSE(MayHide({"--mca", "btl", "tcp,self"}));
  EXPECT_TRUE(MayHide({"--output-filename", "out:nocopy"}));
  EXPECT_TRUE(MayHide({"--output", "file=out:nocopy"}));
  EXPECT_TRUE(MayHide({"-xterm", "0"}));
  EXPECT_TRUE(MayHide({"--merge-stderr-to-stdout"}));
  EXPECT_TRUE(MayHide({"--mca", "orte_output_filename", "out:nocopy"}));
}

TEST(HiddenReports, ByVariablesForTheSame) {
  EXPECT_FALSE(MayHide({}, {{"OMPI_MCA_plm_rsh_agent", "output"}, {"MY_output", "1"}}));
  EXPECT_TRUE(MayHide({}, {{"OMPI_MCA_orte_output_filename", "out:nocopy"}}));
  EXPECT_TRUE(MayHide({}, {{"PRTE_MCA_prte_xterm", "0"}}));
}

}  // namespace
}  // namespace launcher
