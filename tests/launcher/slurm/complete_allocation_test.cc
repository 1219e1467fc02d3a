// SPDX-License-Identifier: Apache-2.0

#include "launcher/slurm/complete_allocation.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "launcher/base/error.h"

namespace launcher {
namespace {

// An environment in which scontrol does `commands`.
class Scontrol {
 public:
  explicit Scontrol(const std::string& commands)
      : folder_(testing::TempDir() + "complete." + std::to_string(getpid())) {
    std::filesystem::create_directory(folder_);
    std::ofstream(folder_ / "scontrol") << "#!/bin/sh\n" << commands << "\n";
    std::filesystem::permissions(folder_ / "scontrol", std::filesystem::perms::owner_all);
  }
  ~Scontrol() { std::filesystem::remove_all(folder_); }
  Scontrol(const Scontrol&) = delete;
  Scontrol& operator=(const Scontrol&) = delete;

  Environment With(Environment variables = {}) const {
    variables["PATH"] = folder_.string() + ":/usr/bin:/bin";
    return variables;
  }

 private:
  std::filesystem::path folder_;
};

// The refusal where scontrol does `commands`; "" where there is none.
std::string RefusalWith(const std::string& commands) {
  const Scontrol scontrol(commands);
  Allocation allocation;
  allocation.job_id = "7";
  allocation.gpus_unclear = "no variable says it";
  allocation.nodes.emplace_back().host = "n1";
  try {
    AskSlurmForGpus(scontrol.With(), &allocation);
  } catch (const LaunchError& error) {
    EXPECT_EQ(error.exit_code(), EX_CONFIG);
    return error.what();
  }
  return "";
}

// The slots of n1 and n2, which had two each, where they have so many GPUs.
std::vector<int> SlotsWith(int gpus_of_n1, int gpus_of_n2, const std::string& gpus_per_task) {
  const auto line = [](const std::string& host, int gpus) {
    return "echo '  Nodes=" + host + " CPU_IDs=0 Mem=1 GRES=gpu:" + std::to_string(gpus) + "';";
  };
  const Scontrol scontrol("echo JobId=7;" + line("n1", gpus_of_n1) + line("n2", gpus_of_n2));
  Allocation allocation;
  allocation.job_id = "7";
  allocation.gpus_unclear = "no variable says it";
  for (const char* host : {"n1", "n2"}) {
    allocation.nodes.emplace_back().host = host;
    allocation.nodes.back().slots = 2;
  }
  AskSlurmForGpus(scontrol.With({{"SLURM_GPUS_PER_TASK", gpus_per_task}}), &allocation);
  EXPECT_EQ(allocation.nodes[0].gpus, gpus_of_n1);
  return {allocation.nodes[0].slots.value_or(-1), allocation.nodes[1].slots.value_or(-1)};
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

TEST(AskSlurmForGpus, PutsTasksWhereTheirGpusAre) {
  using Slots = std::vector<int>;
  EXPECT_EQ(SlotsWith(1, 3, "1"), (Slots{1, 3}));
  EXPECT_EQ(SlotsWith(6, 2, "2"), (Slots{3, 1}));
  EXPECT_EQ(SlotsWith(1, 4, "1"), (Slots{1, 3}));
  EXPECT_EQ(SlotsWith(4, 4, "1"), (Slots{2, 2}));  // whole nodes: more GPUs than the tasks need
  EXPECT_EQ(SlotsWith(3, 5, "2"), (Slots{2, 2}));  // of 8 GPUs only 6 are in pairs
  EXPECT_EQ(SlotsWith(1, 2, "1"), (Slots{2, 2}));
  EXPECT_EQ(SlotsWith(0, 4, "1"), (Slots{2, 2}));
  EXPECT_EQ(SlotsWith(1, 3, ""), (Slots{2, 2}));
}

TEST(AskSlurmForAddress, SaysWhatScontrolSays) {
  const Scontrol scontrol("echo \"NodeName=$3\"; echo '   NodeAddr=10.1.2.3 NodeHostName=x7'");
  EXPECT_EQ(AskSlurmForAddress("n1", scontrol.With()), "10.1.2.3");
  const Scontrol silent("echo 'NodeAddr=10.1.2.3'; exit 1");
  EXPECT_EQ(AskSlurmForAddress("n1", silent.With()), "");
}

}  // namespace
}  // namespace launcher
