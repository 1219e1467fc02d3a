// SPDX-License-Identifier: Apache-2.0
//
// From the environments of real jobs under each version of Slurm to the command that starts the
// ranks: every step is the real one, and the golden commands are those that ran in tests/cluster.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/launch/launcher.h"
#include "launcher/plan/planner.h"
#include "launcher/slurm/pmi_types.h"
#include "launcher/slurm/slurm_allocation.h"
#include "launcher/slurm/slurm_version.h"
#include "support/quoting.h"
#include "tests/launcher/slurm/slurm_environment_file.h"

namespace launcher {
namespace {

// What `srun --version` and `srun --mpi=list` print.
struct Slurm {
  const char* version;
  const char* mpi_list;
};

constexpr Slurm k2011 = {"slurm-wlm 20.11.4\n",
                         "srun: MPI types are...\nsrun: pmix\nsrun: pmix_v4\nsrun: none\n"
                         "srun: cray_shasta\nsrun: pmi2\n"};
constexpr Slurm k2205 = {"slurm-wlm 22.05.8\n",
                         "MPI plugin types are...\n\tpmix\n\tnone\n\tcray_shasta\n\tpmi2\n"
                         "specific pmix plugin versions available: pmix_v4\n"};
constexpr Slurm k2411 = {"slurm-wlm 24.11.5\n",
                         "MPI plugin types are...\n\tnone\n\tpmix\n\tcray_shasta\n\tpmi2\n"
                         "specific pmix plugin versions available: pmix_v5\n"};
constexpr Slurm k2605 = {"slurm-wlm 26.05.5\n",
                         "MPI plugin types are...\n\tnone\n\tpmi2\n\tcray_shasta\n"};

constexpr char kTail[] =
    " --overcommit --kill-on-bad-exit=1 --export=ALL --input=0 /shim -- program";

struct Golden {
  const char* environment;  // a file of tests/fixtures/slurm-env; 22.05's where 20.11 sets the same
  Slurm slurm;
  const char* pmi;
  const char* command;  // between srun and kTail
};

const std::vector<Golden>& Goldens() {
  static const std::vector<Golden> table = {
      {"N2-gres-gpu-4.txt", k2011, "auto",
       "--mpi=pmix --ntasks=8 --distribution=arbitrary --nodelist=/run/TASKFILE "
       "--gpus-per-node=4"},
      {"N2-gpus-6-uneven.txt", k2011, "auto",
       "--mpi=pmix --ntasks=6 --distribution=arbitrary --nodelist=/run/TASKFILE --gpus=6"},
      {"N1-gpus-per-node-2-ntasks-2-cpus-per-task-2.txt", k2011, "auto",
       "--mpi=pmix --ntasks=2 --distribution=arbitrary --nodelist=/run/TASKFILE "
       "--gpus-per-node=2"},
      {"n3-gpus-per-task-1.txt", k2011, "auto",
       "--mpi=pmix --ntasks=3 --distribution=arbitrary --nodelist=/run/TASKFILE "
       "--gpus-per-node=3"},
      {"N2-gres-gpu-4.txt", k2205, "auto",
       "--mpi=pmix --ntasks=8 --distribution=arbitrary --nodelist=/run/TASKFILE "
       "--gpus-per-node=4"},
      {"N2-gpus-6-uneven.txt", k2205, "auto",
       "--mpi=pmix --ntasks=6 --distribution=arbitrary --nodelist=/run/TASKFILE --gpus=6"},
      {"N1-gpus-per-node-2-ntasks-2-cpus-per-task-2.txt", k2205, "auto",
       "--mpi=pmix --ntasks=2 --distribution=arbitrary --nodelist=/run/TASKFILE "
       "--gpus-per-node=2"},
      {"n3-gpus-per-task-1.txt", k2205, "auto",
       "--mpi=pmix --ntasks=3 --distribution=arbitrary --nodelist=/run/TASKFILE "
       "--gpus-per-node=3"},
      {"slurm-24.11-N2-exclusive-gres-gpu-4.txt", k2411, "auto",
       "--mpi=pmix --ntasks=8 --distribution=arbitrary --nodelist=/run/TASKFILE "
       "--gpus-per-node=4"},
      {"slurm-24.11-N3-gres-gpu-4.txt", k2411, "auto",
       "--mpi=pmix --ntasks=12 --distribution=arbitrary --nodelist=/run/TASKFILE "
       "--gpus-per-node=4"},
      {"slurm-24.11-N3-gres-gpu-4-ntasks-per-node-4.txt", k2411, "auto",
       "--mpi=pmix --ntasks=12 --distribution=arbitrary --nodelist=/run/TASKFILE "
       "--gpus-per-node=4"},
      {"slurm-24.11-N2-gpus-6-uneven.txt", k2411, "auto",
       "--mpi=pmix --ntasks=6 --distribution=arbitrary --nodelist=/run/TASKFILE --gpus=6"},
      {"slurm-24.11-N1-gpus-per-node-2-ntasks-2-cpus-per-task-2.txt", k2411, "auto",
       "--mpi=pmix --ntasks=2 --distribution=arbitrary --nodelist=/run/TASKFILE "
       "--gpus-per-node=2"},
      {"slurm-24.11-n3-gpus-per-task-1.txt", k2411, "auto",
       "--mpi=pmix --ntasks=3 --distribution=arbitrary --nodelist=/run/TASKFILE "
       "--gpus-per-node=3"},
      {"slurm-26.05-N2-exclusive-gres-gpu-4.txt", k2605, "none",
       "--mpi=none --ntasks=8 --distribution=arbitrary --nodelist=/run/TASKFILE "
       "--gpus-per-node=4"},
      {"slurm-26.05-N3-gres-gpu-4.txt", k2605, "none",
       "--mpi=none --ntasks=12 --distribution=arbitrary --nodelist=/run/TASKFILE "
       "--gpus-per-node=4"},
      {"slurm-26.05-N3-gres-gpu-4-ntasks-per-node-4.txt", k2605, "none",
       "--mpi=none --ntasks=12 --distribution=arbitrary --nodelist=/run/TASKFILE "
       "--gpus-per-node=4"},
      {"slurm-26.05-N2-gpus-6-uneven.txt", k2605, "none",
       "--mpi=none --ntasks=6 --distribution=arbitrary --nodelist=/run/TASKFILE --gpus=6"},
      {"slurm-26.05-N1-gpus-per-node-2-ntasks-2-cpus-per-task-2.txt", k2605, "none",
       "--mpi=none --ntasks=2 --distribution=arbitrary --nodelist=/run/TASKFILE "
       "--gpus-per-node=2"},
      {"slurm-26.05-n3-gpus-per-task-1.txt", k2605, "none",
       "--mpi=none --ntasks=3 --distribution=arbitrary --nodelist=/run/TASKFILE "
       "--gpus-per-node=3"},
  };
  return table;
}

std::string CommandOf(const Golden& golden) {
  const Environment environment = ReadBatchEnvironment(golden.environment);
  const Allocation allocation = ReadSlurmAllocation(environment).value();
  const NodeTopology none;
  LaunchRequest job;
  job.plan = MakePlan(allocation, {none}, {});
  LauncherTools means;
  means.in_slurm = true;
  means.mpi_types = ParseMpiList(golden.slurm.mpi_list);
  const LauncherChoice choice = ChooseLauncher(job.plan, true, golden.pmi, means);
  job.mpi_type = choice.mpi_type;
  job.environment = environment;
  for (const AllocatedNode& node : allocation.nodes) job.hosts_of_job.push_back(node.host);
  job.srun = "srun";
  job.mpirun = "mpirun";
  job.in_slurm = true;
  job.run_directory = "/run";
  job.shim = "/shim";
  job.program = {"program"};
  const ChildCommand command = FindLauncher(choice.name).make_commands(job).front();
  for (const std::string& variable : command.environment) {
    EXPECT_THAT(variable, testing::Not(testing::StartsWith("SLURM_TRES_PER_TASK")));
  }
  return support::QuoteCommand(command.argv);
}

TEST(SlurmCommands, AreTheGoldenOnesOfEveryVersion) {
  for (const Golden& golden : Goldens()) {
    SCOPED_TRACE(std::string(golden.environment) + ", " + golden.slurm.version);
    EXPECT_EQ(CommandOf(golden), "srun " + std::string(golden.command) + kTail);
  }
}

TEST(SlurmCommands, GoToMpirunWhereSrunHasNoPmix) {
  EXPECT_THAT(CommandOf({"slurm-26.05-N3-gres-gpu-4.txt", k2605, "auto", ""}),
              testing::AllOf(testing::HasSubstr("'SLURM_NODELIST=n[1-3]' "
                                                "'SLURM_TASKS_PER_NODE=4(x3)' mpirun"),
                             testing::HasSubstr("-n 12")));
}

TEST(SlurmCommands, ThePauseIsOfTheVersionsThatNeedIt) {
  for (const Slurm& slurm : {k2011, k2205}) {
    EXPECT_TRUE(PmixServersNeedPause(ParseSlurmVersion(slurm.version))) << slurm.version;
  }
  for (const Slurm& slurm : {k2411, k2605}) {
    EXPECT_FALSE(PmixServersNeedPause(ParseSlurmVersion(slurm.version))) << slurm.version;
  }
}

}  // namespace
}  // namespace launcher
