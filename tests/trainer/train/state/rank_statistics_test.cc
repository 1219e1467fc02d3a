// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/state/rank_statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/train/thread_ranks.h"
#include "trainer/backend/registry.h"

namespace trainer {
namespace {

using testing::Each;
using testing::ElementsAre;

TEST(RankStatistics, RowsAreInTheOrderOfTheRanksOnEveryRank) {
  RunRanks(3, [](Communicator& communicator) {
    const auto r = static_cast<float>(communicator.rank());
    const std::vector<float> own = {r, 10 * r};
    EXPECT_THAT(GatherRows(own, communicator), ElementsAre(0, 0, 1, 10, 2, 20));
    EXPECT_THAT(MeanOverRanks(own, communicator), ElementsAre(1, 10));
  });
}

TEST(RankStatistics, MeanOfEqualRowsHasTheirBits) {
  const std::vector<float> rows(7, 0.1F);
  EXPECT_THAT(MeanOfRows(rows, 7), Each(0.1F));
}

TEST(RankStatistics, ImportThenExportGivesTheSameBits) {
  const auto backend = MakeBackend("reference", {});
  const auto stream = backend->MakeStream();
  Network network(*backend, {"resnet_tiny", 2, 32, 32, 4, 0});
  std::vector<float> row = ExportStatistics(network, *stream);
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = 1.0F / static_cast<float>(i + 1);
  ImportStatistics(network, row, *stream);
  EXPECT_EQ(ExportStatistics(network, *stream), row);
}

}  // namespace
}  // namespace trainer
