// SPDX-License-Identifier: Apache-2.0

#include "launcher/launch/child_environment.h"

#include <gtest/gtest.h>

namespace launcher {
namespace {

TEST(ChildEnvironment, ForwardsWhatUsersSet) {
  for (const char* name : {"PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "CONDA_PREFIX", "NCCL_DEBUG",
                           "UCX_TLS", "OMP_NUM_THREADS", "MY_VARIABLE", "SLURM_JOB_ID", "TMPDIR"}) {
    EXPECT_TRUE(IsForwarded(name)) << name;
  }
}

TEST(ChildEnvironment, DoesNotForwardWhatBelongsToThisNodeOrShell) {
  for (const char* name :
       {"HOSTNAME", "PWD", "SHLVL", "_", "SSH_CONNECTION", "XDG_RUNTIME_DIR",
        "CUDA_VISIBLE_DEVICES", "SLURM_PROCID", "SLURM_NODEID", "SLURM_STEP_ID", "SLURMD_NODENAME",
        "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "OMPI_MCA_btl", "RANK", ""}) {
    EXPECT_FALSE(IsForwarded(name)) << name;
  }
}

TEST(ChildEnvironment, ForwardsNamesThatNoShellTakes) {
  for (const char* name : {"FOO.BAR", "foo-bar", "BASH_FUNC_x%%", "1X", "A B", "A*", "\xc3\x84"}) {
    EXPECT_TRUE(IsForwarded(name)) << name;
  }
  for (const char* name : {"SSH_A.B", "OMPI_x%%", "SLURM_a.b"}) {
    EXPECT_FALSE(IsForwarded(name)) << name;
  }
}

TEST(ChildEnvironment, KnowsTheIdentityOfAnEnclosingRank) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", "RANK",
                           "HOROVOD_LOCAL_RANK", "DDLRUN_RANK_JOB"}) {
    EXPECT_TRUE(IsRankIdentity(name)) << name;
  }
  for (const char* name : {"OMPI_MCA_btl", "PMIX_MCA_gds", "SLURM_JOB_ID", "RANKS"}) {
    EXPECT_FALSE(IsRankIdentity(name)) << name;
  }
}

TEST(ChildEnvironment, OfSrunLacksWhatIsAnOptionAndKeepsTheRest) {
  const Environment all = {{"PATH", "/bin"},
                           {"SLURM_NO_KILL", "1"},
                           {"SLURM_GRES", "gpu:1"},
                           {"SLURM_JOB_ID", "7"},
                           {"SRUN_CPUS_PER_TASK", "2"}};
  EXPECT_EQ(EnvironmentForSrun(all), (Environment{{"PATH", "/bin"}, {"SLURM_JOB_ID", "7"}}));
  EXPECT_EQ(EnvironmentForMpirun(all),
            (Environment{{"PATH", "/bin"}, {"SLURM_GRES", "gpu:1"}, {"SLURM_JOB_ID", "7"}}));
}

}  // namespace
}  // namespace launcher
