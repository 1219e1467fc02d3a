// SPDX-License-Identifier: Apache-2.0

#include "launcher/base/error.h"
#include "launcher/launch/launcher.h"
#include "support/quoting.h"
#include "tests/launcher/launch/job_of_ranks.h"
#include "tests/support/refusal.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

constexpr bool kRemote = true;

LauncherTools Outside(bool has_mpirun) {
  LauncherTools means;
  if (!has_mpirun) means.mpirun_lacks = "/bin/mpirun is of MPICH (Hydra 4.0.2), not of Open MPI";
  return means;
}

LauncherTools InSlurm(bool has_mpirun, std::vector<std::string> mpi_types) {
  LauncherTools means = Outside(has_mpirun);
  means.in_slurm = true;
  means.mpi_types = std::move(mpi_types);
  return means;
}

LauncherChoice Choose(std::size_t ranks, bool has_remote_ranks, const LauncherTools& means,
                      const std::string& pmi = "auto") {
  LaunchPlan plan;
  plan.ranks.resize(ranks);
  return ChooseLauncher(plan, has_remote_ranks, pmi, means);
}

std::string RejectedChoice(const LauncherTools& means, const std::string& pmi) {
  return tests::Rejection<LaunchError>(EX_UNAVAILABLE, [&] { Choose(2, kRemote, means, pmi); });
}

TEST(ChooseLauncher, TakesMpirunForMoreThanOneRankWhereItIs) {
  EXPECT_EQ(Choose(1, !kRemote, Outside(true)).name, "local");
  EXPECT_EQ(Choose(2, !kRemote, Outside(true)).name, "mpirun");
  EXPECT_EQ(Choose(2, !kRemote, Outside(true), "none").name, "mpirun");
  const LauncherChoice choice = Choose(2, !kRemote, Outside(false));
  EXPECT_EQ(choice.name, "local");
  EXPECT_EQ(choice.reason, Outside(false).mpirun_lacks +
                               ": in each rank an MPI program would be a world of its own");
}

TEST(ChooseLauncher, NeedsMpirunForAnotherMachine) {
  EXPECT_EQ(Choose(1, kRemote, Outside(true)).name, "mpirun");
  LauncherTools means = InSlurm(false, {});
  means.srun_lacks = "no pmix";
  EXPECT_EQ(tests::Rejection<LaunchError>(EX_UNAVAILABLE, [&] { Choose(1, kRemote, means); }),
            "srun cannot (no pmix), ranks on other machines need Open MPI's mpirun, but "
            "/bin/mpirun is of MPICH (Hydra 4.0.2), not of Open MPI: load Open MPI ('module "
            "load openmpi'), or name its mpirun in the site file (mpirun: PATH)");
}

TEST(ChooseLauncher, TakesSrunInsideSlurm) {
  const LauncherTools means = InSlurm(true, {"none", "pmix", "pmi2"});
  EXPECT_EQ(Choose(1, !kRemote, means).name, "srun");
  EXPECT_EQ(Choose(2, kRemote, means).name, "srun");
  EXPECT_EQ(Choose(2, kRemote, means).mpi_type, "pmix");
  EXPECT_EQ(Choose(2, kRemote, InSlurm(true, {"none", "pmix_v4"})).mpi_type, "pmix_v4");
}

TEST(ChooseLauncher, TakesThePmiThatIsAskedFor) {
  const LauncherTools means = InSlurm(true, {"none", "pmix", "pmi2"});
  for (const char* pmi : {"pmix", "pmi2", "none"}) {
    const LauncherChoice choice = Choose(2, kRemote, means, pmi);
    EXPECT_EQ(choice.name, "srun");
    EXPECT_EQ(choice.mpi_type, pmi);
    EXPECT_EQ(choice.reason, "inside Slurm, by --pmi=" + std::string(pmi));
  }
}

TEST(ChooseLauncher, RejectsAPmiThatSrunLacks) {
  const LauncherTools means = InSlurm(true, {"none", "cray_shasta"});
  EXPECT_EQ(RejectedChoice(means, "pmi2"),
            "srun cannot start ranks by --pmi=pmi2: 'srun --mpi=list' knows no pmi2: none "
            "cray_shasta; choose another --pmi");
  EXPECT_THAT(RejectedChoice(means, "pmix"), HasSubstr("knows no pmix: none cray_shasta"));
  LauncherTools no_srun = means;
  no_srun.srun_lacks = "it is not in PATH";
  EXPECT_THAT(RejectedChoice(no_srun, "none"), HasSubstr("--pmi=none: it is not in PATH"));
}

TEST(ChooseLauncher, WithoutPmixTakesMpirunAndSaysHowToChoose) {
  const LauncherChoice choice = Choose(2, kRemote, InSlurm(true, {"none", "pmi2"}));
  EXPECT_EQ(choice.name, "mpirun");
  EXPECT_EQ(choice.reason,
            "srun cannot ('srun --mpi=list' knows no pmix: none pmi2), it reaches other machines; "
            "--pmi=none starts programs that need no MPI by srun");
  LauncherTools broken = InSlurm(true, {});
  broken.srun_lacks = "'srun --mpi=list' failed";
  EXPECT_EQ(Choose(2, kRemote, broken).reason,
            "srun cannot ('srun --mpi=list' failed), it reaches other machines");
}

TEST(ChooseLauncher, WithoutPmixAndMpirunSrunStartsRanksAndSaysWhatDoesNotWork) {
  const LauncherChoice choice = Choose(2, kRemote, InSlurm(false, {"none", "pmi2"}));
  EXPECT_EQ(choice.name, "srun");
  EXPECT_EQ(choice.mpi_type, "none");
  EXPECT_THAT(choice.reason, AllOf(HasSubstr("knows no pmix: none pmi2"),
                                   HasSubstr("MPI programs do not find each "
                                             "other"),
                                   HasSubstr("PyTorch")));
  EXPECT_THAT(RejectedChoice(InSlurm(false, {"cray_shasta"}), "auto"),
              HasSubstr("ranks on other machines need Open MPI's mpirun"));
  EXPECT_EQ(Choose(2, !kRemote, InSlurm(false, {"none"})).name, "local");
}

TEST(ChooseSrun, IsRejectedWithoutPmixUnlessNoneIsAskedFor) {
  const LauncherTools means = InSlurm(true, {"none", "pmi2"});
  EXPECT_EQ(ChooseSrun("none", means).mpi_type, "none");
  EXPECT_THAT(tests::Rejection<LaunchError>(EX_UNAVAILABLE, [&] { ChooseSrun("auto", means); }),
              AllOf(HasSubstr("srun cannot start ranks: 'srun --mpi=list' "
                              "knows no pmix: none pmi2; --pmi=none starts"),
                    HasSubstr("use --launcher=mpirun")));
}

std::string HydraLine(const LaunchRequest& job) {
  const std::vector<ChildCommand> commands = MakeHydraCommands(job);
  EXPECT_EQ(commands.size(), 1U);
  EXPECT_EQ(commands[0].launcher, &TraitsOf("hydra"));
  return support::QuoteCommand(commands[0].argv);
}

TEST(HydraLauncher, OneMachineInheritsItsEnvironment) {
  LaunchRequest job = JobOf({0, 0});
  job.in_slurm = true;  // no srun is needed for this
  EXPECT_EQ(HydraLine(job),
            "/usr/bin/mpirun -bootstrap fork -hosts localhost -n 2 /opt/libexec/ddlrun/ddlrun-rank "
            "-- python train.py '--name=a b'");
  EXPECT_THAT(MakeHydraCommands(job)[0].environment, Contains("DDL_HOST_PORT=2200"));
}

TEST(HydraLauncher, OtherNodesGetTheEnvironmentByNameAndNoValueIsInTheCommand) {
  LaunchRequest job = JobOf({0, 0, 1, 1});
  job.has_remote_ranks = true;
  EXPECT_EQ(HydraLine(job),
            "/usr/bin/mpirun -bootstrap ssh -machinefile /tmp/ddlrun.abc/MACHINEFILE -genvlist "
            "DDLRUN_RANK_JOB,DDL_HOST_PORT,PATH -n 4 "
            "/opt/libexec/ddlrun/ddlrun-rank -- python train.py '--name=a b'");
}

TEST(HydraLauncher, InAJobTheDaemonsAreAStepWithTheGpusOfThePlan) {
  LaunchRequest job = JobOf({0, 0, 1, 1});
  job.has_remote_ranks = job.in_slurm = job.has_lost_nodes = true;
  job.environment["SLURM_NTASKS_PER_NODE"] = "1";
  job.plan.nodes[0].gpus = job.plan.nodes[1].gpus = 2;
  EXPECT_THAT(HydraLine(job), HasSubstr(" -bootstrap slurm "));
  const auto environment = [&job] { return MakeHydraCommands(job)[0].environment; };
  for (const char* variable :
       {"SLURM_GPUS_PER_NODE=2", "SLURM_CPU_BIND=none", "SLURM_MPI_TYPE=none", "SLURM_OVERLAP=1"}) {
    EXPECT_THAT(environment(), Contains(variable));
  }
  EXPECT_THAT(environment(), Not(Contains(StartsWith("SLURM_NTASKS_PER_NODE="))));
  job.plan.nodes[1].gpus = 1;
  EXPECT_THAT(environment(), Contains("SLURM_GPUS=3"));
}

TEST(HydraLauncher, RanksInTurnAreOneTurnAndOtherOrdersAreBlocks) {
  EXPECT_EQ(Machinefile(JobOf({0, 0, 1}).plan), "n1:2\nn2:1\n");
  EXPECT_EQ(Machinefile(JobOf({0, 1, 0, 1}).plan), "n1:1\nn2:1\n");
  EXPECT_EQ(Machinefile(JobOf({0, 1, 0, 1, 0}).plan), "n1:1\nn2:1\n");
  EXPECT_EQ(Machinefile(JobOf({0, 0, 1, 0}).plan), "n1:2\nn2:1\n");
  EXPECT_EQ(Machinefile(JobOf({0, 1, 1, 0, 0}).plan), "n1:1\nn2:2\nn1:2\n");
  EXPECT_EQ(Machinefile(JobOf({0, 1, 0, 0, 1}).plan), "n1:1\nn2:1\nn1:2\nn2:1\n");
}

TEST(HydraLauncher, InAJobAnotherOrderThanThatOfTheNodesIsRejected) {
  for (const std::vector<int>& nodes : {std::vector<int>{1, 0}, std::vector<int>{0, 1, 1, 0, 0}}) {
    LaunchRequest job = JobOf(nodes);
    job.has_remote_ranks = true;
    EXPECT_NO_THROW(MakeHydraCommands(job));
    job.in_slurm = true;
    EXPECT_THROW(MakeHydraCommands(job), LaunchError);
  }
}

std::string SrunLine(LaunchRequest job) {
  job.srun = "/usr/bin/srun";
  const std::vector<ChildCommand> commands = MakeSrunCommands(job);
  EXPECT_EQ(commands.size(), 1U);
  EXPECT_EQ(commands[0].launcher, &TraitsOf("srun"));
  return support::QuoteCommand(commands[0].argv);
}

TEST(SrunLauncher, TheTaskfileSaysWhereEachRankRuns) {
  LaunchRequest job = JobOf({0, 0, 1, 1});
  for (NodePlacement& node : job.plan.nodes) node.gpus = 4;
  // Slurm 24.11: "--nodes is incompatible with --distribution=arbitrary".
  EXPECT_EQ(SrunLine(job),
            "/usr/bin/srun --mpi=pmix --ntasks=4 --distribution=arbitrary "
            "--nodelist=/tmp/ddlrun.abc/TASKFILE --gpus-per-node=4 --overcommit "
            "--kill-on-bad-exit=1 --export=ALL --input=0 /opt/libexec/ddlrun/ddlrun-rank -- python "
            "train.py '--name=a b'");
}

TEST(SrunLauncher, UnevenGpusAreATotal) {
  LaunchRequest job = JobOf({0, 0, 1});
  job.plan.nodes[0].gpus = 2;
  job.plan.nodes[1].gpus = 1;
  EXPECT_THAT(SrunLine(job), HasSubstr(" --gpus=3 "));
}

TEST(SrunLauncher, TaskfileHasALinePerRank) {
  using Files = std::map<std::string, std::string>;
  LaunchPlan plan = JobOf({0, 1, 0, 2}).plan;
  EXPECT_EQ(Taskfiles(plan), (Files{{"TASKFILE", "n1\nn2\nn1\nn3\n"}}));
  plan.nodes[2].component = 1;
  EXPECT_EQ(Taskfiles(plan), (Files{{"TASKFILE", "n1\nn2\nn1\nn3\n"},
                                    {"TASKFILE.0", "n1\nn2\nn1\n"},
                                    {"TASKFILE.1", "n3\n"}}));
}

TEST(SrunLauncher, EachComponentOfAHeterogeneousJobHasItsPart) {
  LaunchRequest job = JobOf({0, 0, 1, 2});
  job.plan.nodes[0].gpus = 2;
  for (const std::size_t node : {1, 2}) {
    job.plan.nodes[node].component = 1;
    job.plan.nodes[node].gpus = 1;
  }
  const std::string line = SrunLine(job);
  EXPECT_THAT(line, HasSubstr("srun --het-group=0 --mpi=pmix --ntasks=2 "
                              "--distribution=arbitrary "
                              "--nodelist=/tmp/ddlrun.abc/TASKFILE.0 --gpus-per-node=2 "));
  EXPECT_THAT(line, HasSubstr("'--name=a b' : --het-group=1 --mpi=pmix --ntasks=2 "
                              "--distribution=arbitrary "
                              "--nodelist=/tmp/ddlrun.abc/TASKFILE.1 --gpus-per-node=1 "));
  job.environment["SLURM_JOB_NUM_NODES"] = "1";
  EXPECT_THAT(MakeSrunCommands(job)[0].environment, Not(Contains("SLURM_JOB_NUM_NODES=1")));
  for (NodePlacement& node : job.plan.nodes) node.component = 0;
  EXPECT_THAT(MakeSrunCommands(job)[0].environment, Contains("SLURM_JOB_NUM_NODES=1"));
}

TEST(SrunLauncher, StandardInputIsThatOfTheFirstRankAlone) {
  LaunchRequest job = JobOf({0, 1});
  EXPECT_THAT(SrunLine(job), HasSubstr(" --input=0 "));
  job.plan.nodes[1].component = 1;
  EXPECT_THAT(SrunLine(job), testing::ContainsRegex("--input=0 .* : .* --input=none "));
}

TEST(SrunLauncher, HeterogeneousJobsAreNumberedByComponents) {
  LaunchRequest job = JobOf({0, 1, 0, 1});
  job.plan.nodes[1].component = 1;
  EXPECT_THROW(SrunLine(job), LaunchError);
  LaunchRequest within = JobOf({0, 1, 2, 1});  // in any order within a component
  within.plan.nodes[1].component = within.plan.nodes[2].component = 1;
  EXPECT_THAT(SrunLine(within), HasSubstr("TASKFILE.1"));
  LaunchRequest back = JobOf({0, 1, 2});  // n3 is again of the first one
  back.plan.nodes[1].component = 1;
  EXPECT_THROW(SrunLine(back), LaunchError);
}

TEST(SrunLauncher, InsideAStepResourcesAreShared) {
  LaunchRequest job = JobOf({0});
  EXPECT_THAT(SrunLine(job), Not(HasSubstr("--overlap")));
  job.in_step = true;
  EXPECT_THAT(SrunLine(job), HasSubstr("--overlap"));
}

TEST(SrunLauncher, ArgumentsOfTheUserComeBeforeItsOwn) {
  LaunchRequest job = JobOf({0});
  job.srun_arguments = {"--container-image=a b", "-v"};
  EXPECT_THAT(SrunLine(job), HasSubstr("srun '--container-image=a b' -v --mpi="));
}

TEST(SrunLauncher, AfterANodeIsLostTheStepBeforeMayStillHoldGpusAndMemory) {
  LaunchRequest job = JobOf({0});
  EXPECT_THAT(SrunLine(job), Not(HasSubstr("--mem")));
  job.has_lost_nodes = true;
  EXPECT_THAT(SrunLine(job), HasSubstr("--overlap --mem=0"));
}

TEST(SrunLauncher, TheBatchScriptsTasksAreNotThoseOfTheStep) {
  LaunchRequest job = JobOf({0});
  job.environment = {{"SLURM_GPUS_PER_TASK", "1"}, {"SLURM_NTASKS", "9"}, {"SLURM_JOB_ID", "7"}};
  EXPECT_THAT(MakeSrunCommands(job)[0].environment,
              ElementsAre("DDLRUN_RANK_JOB={}", "DDL_HOST_PORT=2200", "SLURM_CPU_BIND=none",
                          "SLURM_JOB_ID=7", "SLURM_PMIX_FENCE=ring"));
}

TEST(SrunLauncher, NothingThatSrunReadsFromTheEnvironmentPlacesOrHidesTheRanks) {
  LaunchRequest job = JobOf({0});
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

TEST(SrunLauncher, GivesTheRanksThePmiThatWasChosen) {
  for (const char* type : {"none", "pmi2", "pmix_v4"}) {
    LaunchRequest job = JobOf({0, 1});
    job.mpi_type = type;
    EXPECT_THAT(SrunLine(job), HasSubstr("srun --mpi=" + std::string(type) + " "));
    EXPECT_EQ(testing::Matches(Contains(StartsWith("SLURM_PMIX_FENCE=")))(
                  MakeSrunCommands(job)[0].environment),
              std::string(type).starts_with("pmix"));
  }
}

TEST(SrunLauncher, ServersOfPmixTakeTheNodesOfAPartialStepForThoseOfTheJob) {
  struct Row {
    std::vector<std::string> job, step;  // hosts
    std::string mpi_type, nodes;         // the SLURM_JOB_NODELIST that srun gets
  };
  for (const Row& row : {
           Row{{"n1", "n2", "n3"}, {"n2", "n3"}, "pmix", "n[2-3]"},
           {{"n1", "n2", "n3"}, {"n3", "n2"}, "pmix_v4", "n[2-3]"},  // in Slurm's order
           {{"n1", "n2", "n3"}, {"n1", "n3"}, "pmix", "n[1,3]"},
           {{"n1", "n2", "n3"}, {"n2", "n1", "n3"}, "pmix", "n[2-3]"},  // the second has no ranks
           {{"n1", "n2", "n3"}, {"n2", "n3.site"}, "pmix", "n[1-3]"},   // another name
           {{"n2", "n3"}, {"n2", "n3"}, "pmix", "n[1-3]"},              // all of the job
           {{"n1", "n2", "n3"}, {"n2", "n3"}, "pmi2", "n[1-3]"},
           {{"n1", "n2", "n3"}, {"n2", "n3"}, "none", "n[1-3]"},
       }) {
    LaunchRequest job = JobOf({0, static_cast<int>(row.step.size()) - 1});
    for (std::size_t i = 0; i < row.step.size(); ++i) job.plan.nodes[i].host = row.step[i];
    job.hosts_of_job = row.job;
    job.mpi_type = row.mpi_type;
    job.environment["SLURM_JOB_NODELIST"] = "n[1-3]";
    const std::vector<std::string> environment = MakeSrunCommands(job)[0].environment;
    EXPECT_THAT(environment, Contains("SLURM_JOB_NODELIST=" + row.nodes));
    EXPECT_EQ(testing::Matches(Contains("DDLRUN_JOB_NODELIST=n[1-3]"))(environment),
              row.nodes != "n[1-3]");
  }
}

TEST(SrunLauncher, TheNodesOfAHeterogeneousJobAreItsOwn) {
  LaunchRequest job = JobOf({0, 1});
  job.plan.nodes[1].component = 1;
  job.hosts_of_job = {"n1", "n2", "n3"};
  EXPECT_THAT(MakeSrunCommands(job)[0].environment,
              Not(Contains(StartsWith("DDLRUN_JOB_NODELIST="))));
}

TEST(SrunLauncher, FencesOfPmixGoRoundARingUnlessTheUserSaysElse) {
  LaunchRequest job = JobOf({0, 1});
  EXPECT_THAT(MakeSrunCommands(job)[0].environment, Contains("SLURM_PMIX_FENCE=ring"));
  job.environment = {{"SLURM_PMIX_FENCE", "tree"}};
  EXPECT_THAT(MakeSrunCommands(job)[0].environment, Contains("SLURM_PMIX_FENCE=tree"));
}

}  // namespace
}  // namespace launcher
