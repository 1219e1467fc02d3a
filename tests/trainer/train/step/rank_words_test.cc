// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/step/rank_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "tests/trainer/train/thread_ranks.h"
#include "trainer/train/step/metrics.h"

namespace trainer {
namespace {

DeviceState StateOf(std::optional<int> percent, std::optional<int> mhz,
                    std::optional<int> celsius) {
  DeviceState state;
  state.busy_percent = percent;
  state.compute_mhz = mhz;
  state.celsius = celsius;
  return state;
}

void ExpectSameState(const DeviceState& state, const DeviceState& other) {
  EXPECT_EQ(state.busy_percent, other.busy_percent);
  EXPECT_EQ(state.compute_mhz, other.compute_mhz);
  EXPECT_EQ(state.celsius, other.celsius);
}

TEST(PackedState, IsUnpackedWithWhatIsNotKnown) {
  for (const DeviceState& state :
       {StateOf({}, {}, {}), StateOf(0, 0, 0), StateOf(100, {}, 61), StateOf({}, 65534, {}),
        StateOf(65534, 65534, 65534), StateOf(98, 1980, {})}) {
    const double packed = PackState(state);
    EXPECT_GT(packed, 0);
    ExpectSameState(UnpackState(packed), state);
  }
  ExpectSameState(UnpackState(PackState(StateOf(-1, 65535, 7))), StateOf({}, {}, 7));
}

constexpr int kSayingRanks = 19;  // three groups, of 8, 8 and 3

TEST(RankWords, RanksTakeTurnsInTheSumOfTheStep) {
  RunRanks(kSayingRanks, [](Communicator& communicator) {
    const int rank = communicator.rank();
    RankWords words(rank, kSayingRanks);
    for (int step = 0; step < 4; ++step) {
      StepExchange own;
      own.bad_weights = 1;
      own.rank_words = words.Say(rank + step, StateOf(rank, 1000 + step, {}));
      EXPECT_EQ(own.rank_words.size(), step == 2 ? 6U : 16U);
      EXPECT_EQ(Exchange(own, communicator).bad_weights, kSayingRanks);
      const auto heard = words.Heard();
      ASSERT_EQ(heard.size(), 19U);
      // In the first three steps the groups speak in their order, then the first again.
      EXPECT_TRUE(heard[7].is_known);
      EXPECT_EQ(heard[8].is_known, step >= 1);
      EXPECT_EQ(heard[18].is_known, step >= 2);
      ExpectSameState(heard[7].device, StateOf(7, step < 3 ? 1000 : 1003, {}));
      EXPECT_EQ(heard[7].input_wait_seconds, step < 3 ? 7 : 7 + 2) << "mean of steps 1 to 3";
      if (step >= 1) {
        EXPECT_EQ(heard[8].input_wait_seconds, 8.5) << "mean of steps 0 and 1";
        ExpectSameState(heard[8].device, StateOf(8, 1001, {}));
      }
      if (step >= 2) {
        EXPECT_EQ(heard[18].input_wait_seconds, 19);
      }
    }
  });
}

}  // namespace
}  // namespace trainer
