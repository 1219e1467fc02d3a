// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/plan_cache.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "trainer/core/error.h"

namespace trainer {
namespace {

TEST(PlanCache, FindsWhatWasAdded) {
  PlanCache cache;
  EXPECT_EQ(cache.Find("forward"), std::nullopt);
  cache.Add("forward", "one");
  cache.Add("backward", "two");
  EXPECT_EQ(cache.Find("forward"), "one");
  cache.Add("forward", "three");
  EXPECT_EQ(cache.Find("forward"), "three");
  EXPECT_EQ(cache.Find("forwar"), std::nullopt);
}

constexpr const char* kTwoPlans = "ddltraind plans 1, crc32c b322ea28\na\t1\nb\t2 of 3\n";

TEST(PlanCache, TextIsThereOnceAfterEachChange) {
  PlanCache cache;
  EXPECT_EQ(cache.TakeNews(), std::nullopt);
  cache.Add("b", "2 of 3");
  cache.Add("a", "1");
  EXPECT_EQ(cache.TakeNews(), kTwoPlans);
  EXPECT_EQ(cache.TakeNews(), std::nullopt);
  cache.Add("a", "3");
  EXPECT_EQ(cache.TakeNews(), "ddltraind plans 1, crc32c 982d735b\na\t3\nb\t2 of 3\n");
}

TEST(PlanCache, TextIsReadAgain) {
  PlanCache cache;
  EXPECT_TRUE(cache.Read(kTwoPlans));
  EXPECT_EQ(cache.Find("a"), "1");
  EXPECT_EQ(cache.Find("b"), "2 of 3");
  EXPECT_EQ(cache.TakeNews(), std::nullopt);  // that is no news
  cache.Add("a", "3");
  EXPECT_TRUE(cache.TakeNews());
}

TEST(PlanCache, TextThatIsNotWholeIsNotRead) {
  const std::string whole = kTwoPlans;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    PlanCache cache;
    EXPECT_FALSE(cache.Read(whole.substr(0, i))) << i;
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(cache.Read(changed)) << i;
    EXPECT_EQ(cache.Find("a"), std::nullopt) << i;
  }
}

TEST(PlanCache, NamesHaveNoTabsOrEndsOfLines) {
  PlanCache cache;
  EXPECT_THROW(cache.Add("", "1"), Error);
  EXPECT_THROW(cache.Add("a\n", "1"), Error);
  EXPECT_THROW(cache.Add("a", "1\t2"), Error);
  EXPECT_THROW(cache.Add("a", ""), Error);
}

TEST(DevicePlans, AreThoseOfOneDevice) {
  const auto cache = std::make_shared<PlanCache>();
  const DevicePlans fast(cache, "H200, cuDNN 9.19.0");
  const DevicePlans slow(cache, "V100, cuDNN 9.10.0");
  fast.Add("forward", "1");
  EXPECT_EQ(fast.Find("forward"), "1");
  EXPECT_EQ(slow.Find("forward"), std::nullopt);
  slow.Add("forward", "2");
  EXPECT_EQ(fast.Find("forward"), "1");
  EXPECT_EQ(cache->Find("V100, cuDNN 9.10.0: forward"), "2");
}

TEST(DevicePlans, AreForgottenWithoutACache) {
  const DevicePlans plans(nullptr, "H200");
  plans.Add("forward", "1");
  EXPECT_EQ(plans.Find("forward"), std::nullopt);
}

}  // namespace
}  // namespace trainer
