// SPDX-License-Identifier: Apache-2.0

#include "trainer/outputs/launch_description.h"

#include <gtest/gtest.h>

namespace trainer {
namespace {

TEST(DescribeLaunch, SaysWhatALaunchWasMadeWith) {
  launcher::RankInfo rank;
  rank.world_size = 8;
  rank.node_count = 2;
  LaunchFacts facts = {.version = "0.1.0",
                       .arguments = {"--mode=train", "--data_dir=my images"},
                       .backend = "cpu: oneDNN 2.6.3",
                       .communication = "MPI (Open MPI v4.1.4), 8 ranks",
                       .job = ""};
  const LogFields fields = DescribeLaunch(facts, rank, "gpu025");
  EXPECT_EQ(PythonJson(fields),
            "{\"program\": \"ddltraind 0.1.0\", "
            "\"command\": \"ddltraind --mode=train '--data_dir=my images'\", \"ranks\": 8, "
            "\"nodes\": 2, \"host\": \"gpu025\", \"backend\": \"cpu: oneDNN 2.6.3\", "
            "\"communication\": \"MPI (Open MPI v4.1.4), 8 ranks\"}");
  facts.job = "4711";
  EXPECT_EQ(DescribeLaunch(facts, rank, "gpu025").back(),
            (std::pair<std::string, LogValue>("job", "4711")));
}

}  // namespace
}  // namespace trainer
