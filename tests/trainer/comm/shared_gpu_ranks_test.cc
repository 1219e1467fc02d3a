// SPDX-License-Identifier: Apache-2.0

#include "tests/support/test.h"
#include "tests/trainer/train/thread_ranks.h"
#include "trainer/comm/communicator.h"

namespace trainer {
namespace {

using Ranks = std::vector<int>;

// What all of as many ranks get, of which rank r computes on gpus[r].
Ranks FirstsOf(const std::vector<std::string>& gpus) {
  std::vector<Ranks> firsts(gpus.size());
  RunRanks(static_cast<int>(gpus.size()), [&](Communicator& communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    firsts[rank] = FirstRanksOfGpus(communicator, gpus[rank]);
  });
  EXPECT_THAT(firsts, testing::Each(firsts.front()));
  return firsts.front();
}

TEST(FirstRanksOfGpus, AreTheRanksThemselvesWhereNoneShares) {
  EXPECT_EQ(FirstsOf({"0000:1B:00.0"}), (Ranks{0}));
  EXPECT_EQ(FirstsOf({"0000:1B:00.0", "0000:1C:00.0", "0001:1B:00.0"}), (Ranks{0, 1, 2}));
}

TEST(FirstRanksOfGpus, AreTheLowestOnEachGpu) {
  EXPECT_EQ(FirstsOf({"0000:1B:00.0", "0000:1C:00.0", "0000:1C:00.0", "0000:1B:00.0"}),
            (Ranks{0, 1, 1, 0}));
}

TEST(FirstRanksOfGpus, RanksWithoutAGpuShareNone) {
  EXPECT_EQ(FirstsOf({"", "0000:1B:00.0", "", "0000:1B:00.0"}), (Ranks{0, 1, 2, 1}));
}

}  // namespace
}  // namespace trainer
