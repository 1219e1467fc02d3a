// SPDX-License-Identifier: Apache-2.0

#include "launcher/base/error.h"
#include "launcher/launch/launcher.h"
#include "support/quoting.h"
#include "tests/launcher/launch/job_of_ranks.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

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
  EXPECT_THAT(SrunLine(job), testing::HasSubstr(" --gpus=3 "));
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
  EXPECT_THAT(line, testing::HasSubstr("srun --het-group=0 --mpi=pmix --ntasks=2 "
                                       "--distribution=arbitrary "
                                       "--nodelist=/tmp/ddlrun.abc/TASKFILE.0 --gpus-per-node=2 "));
  EXPECT_THAT(line, testing::HasSubstr("'--name=a b' : --het-group=1 --mpi=pmix --ntasks=2 "
                                       "--distribution=arbitrary "
                                       "--nodelist=/tmp/ddlrun.abc/TASKFILE.1 --gpus-per-node=1 "));
  job.environment["SLURM_JOB_NUM_NODES"] = "1";
  EXPECT_THAT(MakeSrunCommands(job)[0].environment,
              testing::Not(Contains("SLURM_JOB_NUM_NODES=1")));
  for (NodePlacement& node : job.plan.nodes) node.component = 0;
  EXPECT_THAT(MakeSrunCommands(job)[0].environment, Contains("SLURM_JOB_NUM_NODES=1"));
}

TEST(SrunLauncher, StandardInputIsThatOfTheFirstRankAlone) {
  LaunchRequest job = JobOf({0, 1});
  EXPECT_THAT(SrunLine(job), testing::HasSubstr(" --input=0 "));
  job.plan.nodes[1].component = 1;
  EXPECT_THAT(SrunLine(job), testing::ContainsRegex("--input=0 .* : .* --input=none "));
}

TEST(SrunLauncher, HeterogeneousJobsAreNumberedByComponents) {
  LaunchRequest job = JobOf({0, 1, 0, 1});
  job.plan.nodes[1].component = 1;
  EXPECT_THROW(SrunLine(job), LaunchError);
  LaunchRequest within = JobOf({0, 1, 2, 1});  // in any order within a component
  within.plan.nodes[1].component = within.plan.nodes[2].component = 1;
  EXPECT_THAT(SrunLine(within), testing::HasSubstr("TASKFILE.1"));
  LaunchRequest back = JobOf({0, 1, 2});  // n3 is again of the first one
  back.plan.nodes[1].component = 1;
  EXPECT_THROW(SrunLine(back), LaunchError);
}

TEST(SrunLauncher, InsideAStepResourcesAreShared) {
  LaunchRequest job = JobOf({0});
  EXPECT_THAT(SrunLine(job), testing::Not(testing::HasSubstr("--overlap")));
  job.in_step = true;
  EXPECT_THAT(SrunLine(job), testing::HasSubstr("--overlap"));
}

TEST(SrunLauncher, ArgumentsOfTheUserComeBeforeItsOwn) {
  LaunchRequest job = JobOf({0});
  job.srun_arguments = {"--container-image=a b", "-v"};
  EXPECT_THAT(SrunLine(job), testing::HasSubstr("srun '--container-image=a b' -v --mpi="));
}

TEST(SrunLauncher, AfterANodeIsLostTheStepBeforeMayStillHoldGpusAndMemory) {
  LaunchRequest job = JobOf({0});
  EXPECT_THAT(SrunLine(job), testing::Not(testing::HasSubstr("--mem")));
  job.has_lost_nodes = true;
  EXPECT_THAT(SrunLine(job), testing::HasSubstr("--overlap --mem=0"));
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
    EXPECT_THAT(SrunLine(job), testing::HasSubstr("srun --mpi=" + std::string(type) + " "));
    EXPECT_EQ(testing::Matches(Contains(testing::StartsWith("SLURM_PMIX_FENCE=")))(
                  MakeSrunCommands(job)[0].environment),
              std::string(type).starts_with("pmix"));
  }
}

TEST(SrunLauncher, FencesOfPmixGoRoundARingUnlessTheUserSaysElse) {
  LaunchRequest job = JobOf({0, 1});
  EXPECT_THAT(MakeSrunCommands(job)[0].environment, Contains("SLURM_PMIX_FENCE=ring"));
  job.environment = {{"SLURM_PMIX_FENCE", "tree"}};
  EXPECT_THAT(MakeSrunCommands(job)[0].environment, Contains("SLURM_PMIX_FENCE=tree"));
}

}  // namespace
}  // namespace launcher
