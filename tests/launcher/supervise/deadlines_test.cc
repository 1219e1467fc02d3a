// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include "launcher/supervise/time_limits.h"

namespace launcher {
namespace {

TEST(Deadlines, TheFirstOfThemCounts) {
  using std::chrono::microseconds;
  const std::chrono::steady_clock::time_point now{std::chrono::seconds(10)};
  EXPECT_EQ(MillisecondsLeft({}, now), -1);
  EXPECT_EQ(MillisecondsLeft({std::nullopt, std::nullopt}, now), -1);
  EXPECT_EQ(
      MillisecondsLeft({now + microseconds(5000), std::nullopt, now + microseconds(2001)}, now), 3);
  EXPECT_EQ(MillisecondsLeft({now + microseconds(5000), now - microseconds(5000)}, now), 0);
}

}  // namespace
}  // namespace launcher
