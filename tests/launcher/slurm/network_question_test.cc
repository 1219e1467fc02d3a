// SPDX-License-Identifier: Apache-2.0

#include "launcher/slurm/network_question.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace launcher {
namespace {

namespace fs = std::filesystem;

// What is learned where scontrol does `commands`.
ScontrolAnswer AnswerWith(const std::string& commands, Environment environment,
                          bool of_partition = true) {
  const fs::path folder = testing::TempDir() + "network." + std::to_string(getpid());
  fs::create_directory(folder);
  if (!commands.empty()) {
    std::ofstream(folder / "scontrol") << "#!/bin/sh\n" << commands << "\n";
    fs::permissions(folder / "scontrol", fs::perms::owner_all);
  }
  environment["PATH"] = folder.string();
  ScontrolAnswer answer = NetworkQuestion(environment, of_partition).Wait();
  fs::remove_all(folder);
  return answer;
}

TEST(NetworkQuestion, IsAboutTheTopologyOfThePartition) {
  const std::string commands = R"(
case "$1 $2 $3" in
  'show partition gb200') echo 'PartitionName=gb200'; echo '   Topology=racks' ;;
  'show partition main') echo 'PartitionName=main' ;;
  'show partition gone') echo 'no such partition'; exit 1 ;;
  'show topology '*) echo "topology '$3' ${SLURM_TOPO_LEN-whole}" ;;
esac)";
  const auto asked = [&](const Environment& environment) {
    const ScontrolAnswer answer = AnswerWith(commands, environment);
    EXPECT_TRUE(answer.is_ok);
    return answer.text;
  };
  EXPECT_EQ(asked({}), "topology '' whole\n");
  EXPECT_EQ(asked({{"SLURM_JOB_PARTITION", "main"}, {"SLURM_TOPO_LEN", "9"}}),
            "topology '' whole\n");
  EXPECT_EQ(asked({{"SLURM_JOB_PARTITION", "gone"}}), "topology '' whole\n");
  EXPECT_EQ(asked({{"SLURM_JOB_PARTITION", "gb200"}, {"SLURM_TOPO_LEN", "9"}}),
            "topology 'racks' whole\n");
  EXPECT_EQ(AnswerWith(commands, {{"SLURM_JOB_PARTITION", "gb200"}}, false).text,
            "topology '' whole\n");
}

TEST(NetworkQuestion, MayHaveNoAnswer) {
  EXPECT_FALSE(AnswerWith("", {}).is_ok);
  EXPECT_FALSE(AnswerWith("exit 1", {{"SLURM_JOB_PARTITION", "main"}}).is_ok);
}

TEST(FlatTopology, IsWhatTheVariableOfTheNodeSays) {
  EXPECT_TRUE(HasFlatTopology({{"SLURM_TOPOLOGY_ADDR_PATTERN", "node"}}));
  EXPECT_FALSE(HasFlatTopology({{"SLURM_TOPOLOGY_ADDR_PATTERN", "switch.node"}}));
  EXPECT_FALSE(HasFlatTopology({{"SLURM_TOPOLOGY_ADDR_PATTERN", "block.node"}}));
  EXPECT_FALSE(HasFlatTopology({}));
}

}  // namespace
}  // namespace launcher
