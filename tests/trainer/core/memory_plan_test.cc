// SPDX-License-Identifier: Apache-2.0

#include "trainer/core/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "trainer/core/error.h"
#include "trainer/core/philox.h"

namespace trainer {
namespace {

TEST(MemoryPlan, SharesBytesBetweenRequestsThatNeverMeet) {
  MemoryPlan plan;
  const int early = plan.Reserve("early", 1000, 0, 3);
  const int late = plan.Reserve("late", 1000, 4, 5);
  plan.Solve();
  EXPECT_EQ(plan.offset(early), plan.offset(late));
  EXPECT_EQ(plan.total_bytes(), 1024U);
}

TEST(MemoryPlan, KeepsApartRequestsThatMeetInOneInstant) {
  MemoryPlan plan;
  const int first = plan.Reserve("first", 1, 0, 3);
  const int second = plan.Reserve("second", 1, 3, 5);
  plan.Solve();
  EXPECT_NE(plan.offset(first), plan.offset(second));
  EXPECT_EQ(plan.total_bytes(), 2 * MemoryPlan::kAlignment);
}

TEST(MemoryPlan, FillsAGapBelowALaterRequest) {
  MemoryPlan plan;
  plan.Reserve("low, early", 4096, 0, 1);
  plan.Reserve("above it", 2048, 0, 9);
  const int late = plan.Reserve("late", 1024, 5, 6);
  plan.Solve();
  EXPECT_EQ(plan.offset(late), 0U);
  EXPECT_EQ(plan.total_bytes(), 6144U);
}

// Most is in use at tick 4: 2048 bytes that stay, 1024 and 512 that pass.
TEST(MemoryPlan, KnowsWhatPassesWhenMostIsInUse) {
  MemoryPlan plan;
  plan.Reserve("stays", 2048, 0, 9);
  plan.Reserve("passes early", 1280, 2, 2);
  plan.Reserve("passes", 1024, 4, 4);
  plan.Reserve("passes too", 500, 4, 4);
  plan.Reserve("stays for two", 256, 5, 6);
  plan.Solve();
  EXPECT_EQ(plan.passing_bytes(), 1024U + 512U);
  EXPECT_EQ(plan.total_bytes(), 2048U + 1024U + 512U);
}

TEST(MemoryPlan, OfNothingIsEmpty) {
  MemoryPlan plan;
  plan.Solve();
  EXPECT_EQ(plan.total_bytes(), 0U);
  EXPECT_EQ(plan.passing_bytes(), 0U);
}

TEST(MemoryPlan, RefusesMisuse) {
  MemoryPlan plan;
  EXPECT_THROW(plan.Reserve("backwards", 1, 2, 1), Error);
  plan.Solve();
  EXPECT_THROW(plan.Reserve("too late", 1, 0, 1), Error);
  EXPECT_THROW(plan.Solve(), Error);
}

bool Overlap(const MemoryPlan::Request& a, const MemoryPlan::Request& b) {
  const bool in_time = a.first_use <= b.last_use && b.first_use <= a.last_use;
  const bool in_space = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
  return in_time && in_space;
}

TEST(MemoryPlan, NeverOverlapsLiveRequests) {
  for (std::uint64_t round = 0; round < 200; ++round) {
    Random random(7, RandomPurpose::kShuffle, round);
    MemoryPlan plan;
    const std::uint32_t count = 1 + random.Below(60);
    for (std::uint32_t i = 0; i < count; ++i) {
      const int first = static_cast<int>(random.Below(40));
      const int last = first + static_cast<int>(random.Below(20));
      plan.Reserve("request", random.Below(10000), first, last);
    }
    plan.Solve();
    const auto& requests = plan.requests();
    for (std::size_t a = 0; a < requests.size(); ++a) {
      EXPECT_EQ(requests[a].offset % MemoryPlan::kAlignment, 0U);
      EXPECT_LE(requests[a].offset + requests[a].bytes, plan.total_bytes());
      for (std::size_t b = 0; b < a; ++b) EXPECT_FALSE(Overlap(requests[a], requests[b]));
    }
  }
}

}  // namespace
}  // namespace trainer
