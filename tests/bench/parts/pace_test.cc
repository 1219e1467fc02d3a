// SPDX-License-Identifier: Apache-2.0

#include "bench/parts/pace.h"

#include <gtest/gtest.h>

#include <chrono>

namespace bench {
namespace {

using namespace std::chrono_literals;

const Pace::Clock::time_point kStart{1h};

TEST(Pace, ABatchIsDueWhenTheDeviceIsDoneWithTheLast) {
  Pace pace(kStart, 10ms);
  EXPECT_EQ(pace.due(), kStart);
  pace.Came(0ms);
  EXPECT_EQ(pace.due(), kStart + 10ms);
  pace.Came(0ms);
  EXPECT_EQ(pace.due(), kStart + 20ms);
  EXPECT_EQ(pace.waited(), 0ms);
}

TEST(Pace, ALateBatchMakesAllLaterOnesLaterForADeviceCannotCatchUp) {
  Pace pace(kStart, 10ms);
  pace.Came(3ms);
  pace.Came(0ms);
  pace.Came(4ms);
  EXPECT_EQ(pace.due(), kStart + 37ms);
  EXPECT_EQ(pace.waited(), 7ms);
}

TEST(Pace, WithoutATimeToBeBusyTheNextIsDueAtOnce) {
  Pace pace(kStart, 0ms);
  pace.Came(5ms);
  EXPECT_EQ(pace.due(), kStart + 5ms);
}

}  // namespace
}  // namespace bench
