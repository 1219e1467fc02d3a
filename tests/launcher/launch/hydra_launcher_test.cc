// SPDX-License-Identifier: Apache-2.0

#include "launcher/base/error.h"
#include "launcher/launch/launcher.h"
#include "support/quoting.h"
#include "tests/launcher/launch/job_of_ranks.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

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
  job.tag_output = true;
  EXPECT_EQ(HydraLine(job),
            "/usr/bin/mpirun -bootstrap ssh -machinefile /tmp/ddlrun.abc/MACHINEFILE -genvlist "
            "DDLRUN_RANK_JOB,DDL_HOST_PORT,PATH -prepend-rank -n 4 "
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

}  // namespace
}  // namespace launcher
