// SPDX-License-Identifier: Apache-2.0

#include "launcher/base/error.h"
#include "launcher/launch/launcher.h"
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
  EXPECT_EQ(choice.reason, Outside(false).mpirun_lacks);
}

TEST(ChooseLauncher, NeedsMpirunForAnotherMachine) {
  EXPECT_EQ(Choose(1, kRemote, Outside(true)).name, "mpirun");
  LauncherTools means = InSlurm(false, {});
  means.srun_lacks = "no pmix";
  try {
    Choose(1, kRemote, means);
    FAIL();
  } catch (const LaunchError& error) {
    EXPECT_EQ(error.exit_code(), EX_UNAVAILABLE);
    EXPECT_STREQ(error.what(),
                 "srun cannot (no pmix), ranks on other machines need Open MPI's mpirun, but "
                 "/bin/mpirun is of MPICH (Hydra 4.0.2), not of Open MPI: load Open MPI ('module "
                 "load openmpi'), or name its mpirun in the site file (mpirun: PATH)");
  }
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
  EXPECT_THAT(RejectedChoice(means, "pmix"), testing::HasSubstr("knows no pmix: none cray_shasta"));
  LauncherTools no_srun = means;
  no_srun.srun_lacks = "it is not in PATH";
  EXPECT_THAT(RejectedChoice(no_srun, "none"), testing::HasSubstr("--pmi=none: it is not in PATH"));
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
  EXPECT_THAT(choice.reason, testing::AllOf(testing::HasSubstr("knows no pmix: none pmi2"),
                                            testing::HasSubstr("MPI programs do not find each "
                                                               "other"),
                                            testing::HasSubstr("PyTorch")));
  EXPECT_THAT(RejectedChoice(InSlurm(false, {"cray_shasta"}), "auto"),
              testing::HasSubstr("ranks on other machines need Open MPI's mpirun"));
  EXPECT_EQ(Choose(2, !kRemote, InSlurm(false, {"none"})).name, "local");
}

TEST(ChooseSrun, IsRejectedWithoutPmixUnlessNoneIsAskedFor) {
  const LauncherTools means = InSlurm(true, {"none", "pmi2"});
  EXPECT_EQ(ChooseSrun("none", means).mpi_type, "none");
  try {
    ChooseSrun("auto", means);
    FAIL();
  } catch (const LaunchError& error) {
    EXPECT_EQ(error.exit_code(), EX_UNAVAILABLE);
    EXPECT_THAT(error.what(),
                testing::AllOf(testing::HasSubstr("srun cannot start ranks: 'srun --mpi=list' "
                                                  "knows no pmix: none pmi2; --pmi=none starts"),
                               testing::HasSubstr("use --launcher=mpirun")));
  }
}

}  // namespace
}  // namespace launcher
