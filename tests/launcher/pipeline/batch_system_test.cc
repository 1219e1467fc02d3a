// SPDX-License-Identifier: Apache-2.0

#include "launcher/pipeline/batch_system.h"

#include "launcher/base/error.h"
#include "tests/support/refusal.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

const std::map<std::string, std::string> kFiles = {
    {"pbs", "n1\nn2\n"},
    {"torque", "n2\nn2\nn1\nn2\nn1\n"},
    {"lsf", "login\nh1\nh1\nh2\nh2\nh2\n"},
    {"empty", "\n"},
};

std::optional<Allocation> Read(const Environment& environment) {
  return ReadBatchAllocation(environment, [](const std::string& path) {
    const auto found = kFiles.find(path);
    if (found == kFiles.end()) throw LaunchError(EX_DATAERR, "cannot read " + path);
    return found->second;
  });
}

// "n1 n2:3 of PBS_NODEFILE=pbs"; "none".
std::string Described(const Environment& environment) {
  const std::optional<Allocation> allocation = Read(environment);
  if (!allocation) return "none";
  EXPECT_TRUE(allocation->slots_may_be_cores);
  std::string text;
  for (const AllocatedNode& node : allocation->nodes) {
    text += node.host + (node.slots ? ":" + std::to_string(*node.slots) : "") + " ";
  }
  return text + "of " + allocation->origin_text;
}

TEST(DescribeEnclosingLaunch, NamesALauncherThatHasStartedSeveral) {
  EXPECT_EQ(DescribeEnclosingLaunch({{"OMPI_COMM_WORLD_SIZE", "2"}}),
            "ddlrun is one of 2 processes of mpirun (OMPI_COMM_WORLD_SIZE=2), each of which starts "
            "all ranks: write `ddlrun PROGRAM` without mpirun; if OMPI_COMM_WORLD_SIZE is left of "
            "another job, unset it");
  EXPECT_THAT(DescribeEnclosingLaunch({{"PMI_SIZE", "16"}}),
              StartsWith("ddlrun is one of 16 processes of mpiexec (PMI_SIZE=16)"));
  for (const Environment& environment :
       {Environment(), Environment{{"OMPI_COMM_WORLD_SIZE", "1"}},
        Environment{{"OMPI_COMM_WORLD_SIZE", "x"}}, Environment{{"SLURM_STEP_NUM_TASKS", "2"}},
        Environment{{"OMPI_COMM_WORLD_SIZE", "2"}, {"DDLRUN_LAUNCHER", "mpirun"}}}) {
    EXPECT_EQ(DescribeEnclosingLaunch(environment), "");
  }
}

TEST(BatchSystem, IsReadByTheVariablesOfEach) {
  const struct {
    Environment environment;
    std::string described;
  } kCases[] = {
      {{}, "none"},
      {{{"PBS_NODEFILE", "pbs"}}, "n1 n2 of PBS_NODEFILE=pbs"},
      {{{"PBS_NODEFILE", "torque"}}, "n2:3 n1:2 of PBS_NODEFILE=torque"},
      {{{"PBS_NODEFILE", ""}}, "none"},
      {{{"PBS_NODEFILE", "pbs"}, {"DDLRUN_LAUNCHER", "mpirun"}}, "none"},
      {{{"FLUX_JOB_NNODES", "2"}, {"DDLRUN_LAUNCHER", "mpirun"}}, "none"},
      {{{"LSB_DJOB_HOSTFILE", "lsf"}, {"LSB_MCPU_HOSTS", "x 1"}},
       "h1:2 h2:3 of LSB_DJOB_HOSTFILE=lsf"},
      {{{"LSB_MCPU_HOSTS", "h1 2 h2 2"}}, "h1:2 h2:2 of LSB_MCPU_HOSTS=h1 2 h2 2"},
      {{{"LSB_MCPU_HOSTS", "batch5 1 h1 42 h2 42"}},
       "h1:42 h2:42 of LSB_MCPU_HOSTS=batch5 1 h1 42 h2 42"},
      {{{"LSB_MCPU_HOSTS", "h1 1 h2 1"}}, "h1:1 h2:1 of LSB_MCPU_HOSTS=h1 1 h2 1"},
      {{{"LSB_MCPU_HOSTS", "h1 1 h2 4 h3 1"}}, "h1:1 h2:4 h3:1 of LSB_MCPU_HOSTS=h1 1 h2 4 h3 1"},
      {{{"LSB_MCPU_HOSTS", "h1 1"}}, "h1:1 of LSB_MCPU_HOSTS=h1 1"},
      {{{"FLUX_JOB_ID", "f1"}, {"FLUX_JOB_NNODES", "1"}}, "none"},
      {{{"FLUX_JOB_NNODES", "?"}}, "none"},
  };
  for (const auto& [environment, described] : kCases) {
    EXPECT_EQ(Described(environment), described);
  }
}

TEST(BatchSystem, RejectsWhatItCannotRead) {
  const auto rejection = [](int code, const Environment& environment) {
    return tests::Rejection<LaunchError>(code, [&] { Read(environment); });
  };
  EXPECT_EQ(rejection(EX_CONFIG, {{"FLUX_JOB_NNODES", "2"}}),
            "this is a job of Flux on 2 nodes (FLUX_JOB_NNODES), whose names its variables do not "
            "tell: write ddlrun -H \"$(flux hostlist local)\"");
  EXPECT_EQ(rejection(EX_DATAERR, {{"PBS_NODEFILE", "gone"}}), "cannot read gone");
  EXPECT_THAT(rejection(EX_DATAERR, {{"PBS_NODEFILE", "empty"}}),
              testing::HasSubstr("PBS_NODEFILE=empty"));
  EXPECT_THAT(rejection(EX_DATAERR, {{"LSB_MCPU_HOSTS", "h1 x"}}),
              testing::HasSubstr("LSB_MCPU_HOSTS=h1 x:1:"));
}

}  // namespace
}  // namespace launcher
