// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/step/rank_seconds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/trainer/train/thread_ranks.h"
#include "trainer/train/step/metrics.h"

namespace trainer {
namespace {

using testing::ElementsAre;

TEST(RankSeconds, EachRankHearsOfAllInEveryStep) {
  RunRanks(3, [](Communicator& communicator) {
    RankSeconds seconds(communicator.rank(), 3);
    for (const double step : {1.0, 2.0}) {
      StepExchange own;
      own.bad_weights = 1;
      own.rank_seconds = seconds.Say(step * (communicator.rank() + 1));
      EXPECT_EQ(Exchange(own, communicator).bad_weights, 3);
      EXPECT_THAT(seconds.Heard(), ElementsAre(step, 2 * step, 3 * step));
    }
  });
}

// Sums what 130 ranks say, and gives what rank 0 has heard.
std::vector<double> Step(std::vector<RankSeconds>& ranks, double seconds) {
  std::vector<double> sum(RankSeconds::kPlaces);
  std::vector<std::span<double>> said;
  for (RankSeconds& rank : ranks) {
    said.push_back(rank.Say(seconds));
    for (std::size_t i = 0; i < said.back().size(); ++i) sum[i] += said.back()[i];
    EXPECT_EQ(said.back().size(), said.front().size());
  }
  std::vector<double> heard;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    std::copy_n(sum.begin(), said[i].size(), said[i].begin());
    const auto all = ranks[i].Heard();
    if (i == 0) heard.assign(all.begin(), all.end());
  }
  return heard;
}

TEST(RankSeconds, ManyRanksTakeTurnsAndTellTheirMeans) {
  constexpr int kRanks = 130;
  std::vector<RankSeconds> ranks;
  for (int rank = 0; rank < kRanks; ++rank) ranks.emplace_back(rank, kRanks);
  std::vector<double> heard = Step(ranks, 3);
  EXPECT_EQ(heard[0], 3);
  EXPECT_EQ(heard[63], 3);
  EXPECT_EQ(heard[64], 0) << "it has not spoken yet";
  heard = Step(ranks, 6);
  EXPECT_EQ(heard[63], 3);
  EXPECT_EQ(heard[64], 4.5);
  heard = Step(ranks, 9);
  EXPECT_EQ(heard[127], 4.5);
  EXPECT_EQ(heard[128], 6);
  EXPECT_EQ(heard[129], 6);
  heard = Step(ranks, 12);
  EXPECT_EQ(heard[0], 9) << "mean of what came after its first turn";
  EXPECT_EQ(heard[129], 6);
}

}  // namespace
}  // namespace trainer
