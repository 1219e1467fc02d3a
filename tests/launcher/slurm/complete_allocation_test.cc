// SPDX-License-Identifier: Apache-2.0

#include "launcher/slurm/complete_allocation.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "launcher/base/error.h"

namespace launcher {
namespace {

// The refusal where scontrol does `commands`; "" where there is none.
std::string RefusalWith(const std::string& commands) {
  namespace fs = std::filesystem;
  const fs::path folder = testing::TempDir() + "complete." + std::to_string(getpid());
  fs::create_directory(folder);
  std::ofstream(folder / "scontrol") << "#!/bin/sh\n" << commands << "\n";
  fs::permissions(folder / "scontrol", fs::perms::owner_all);
  Allocation allocation;
  allocation.job_id = "7";
  allocation.gpus_unclear = "no variable says it";
  allocation.nodes.emplace_back().host = "n1";
  std::string refusal;
  try {
    AskSlurmForGpus({{"PATH", folder.string() + ":/usr/bin:/bin"}}, &allocation);
  } catch (const LaunchError& error) {
    EXPECT_EQ(error.exit_code(), EX_CONFIG);
    refusal = error.what();
  }
  fs::remove_all(folder);
  return refusal;
}

TEST(AskSlurmForGpus, RefusesAJobThatIsOver) {
  const std::string hint =
      ": leave this shell, or unset its SLURM_ variables: unset \"${!SLURM_@}\"";
  EXPECT_EQ(RefusalWith("echo 'JobId=7 JobName=x'; echo '  JobState=TIMEOUT Reason=TimeLimit'; "
                        "echo '  Nodes=n1 CPU_IDs=0 Mem=1 GRES='"),
            "job 7 is over (TIMEOUT)" + hint);
  EXPECT_EQ(RefusalWith("echo 'slurm_load_jobs error: Invalid job id specified'; exit 1"),
            "job 7 is over (Slurm no longer knows it)" + hint);
}

TEST(AskSlurmForGpus, TellsWhyThereIsNoAnswer) {
  EXPECT_EQ(
      RefusalWith("echo 'slurm_load_jobs error: Unable to contact slurm controller'; exit 1"),
      "no variable says it; asking scontrol show job: slurm_load_jobs error: Unable to contact "
      "slurm controller");
  EXPECT_EQ(RefusalWith("echo 'JobId=7 JobName=x'; echo '  JobState=RUNNING'; "
                        "echo '  Nodes=n1 CPU_IDs=0 Mem=1 GRES=gpu:1'"),
            "");
}

}  // namespace
}  // namespace launcher
