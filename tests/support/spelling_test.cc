// SPDX-License-Identifier: Apache-2.0

#include "support/spelling.h"

#include <gtest/gtest.h>

namespace support {
namespace {

TEST(EditDistance, CountsEditsAndSwaps) {
  EXPECT_EQ(EditDistance("", ""), 0U);
  EXPECT_EQ(EditDistance("", "abc"), 3U);
  EXPECT_EQ(EditDistance("abc", "abc"), 0U);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3U);
  EXPECT_EQ(EditDistance("btach_size", "batch_size"), 1U);
}

TEST(NearestSpelling, FindsTheOneMeant) {
  const std::vector<std::string> options = {"--batch_size", "--data_dir", "--seed"};
  EXPECT_EQ(NearestSpelling("--btach_size", options), "--batch_size");
  EXPECT_EQ(NearestSpelling("--sed", options), "--seed");
  EXPECT_EQ(NearestSpelling("--num", {"--nun", "--nub"}), "--nun");  // the first of both
}

TEST(NearestSpelling, StaysSilentWhenNothingIsNear) {
  EXPECT_EQ(NearestSpelling("--quantize", {"--seed", "--mode"}), "");
  EXPECT_EQ(NearestSpelling(std::string(100000, 'x'), {"--seed"}), "");
  EXPECT_EQ(NearestSpelling("", {}), "");
}

}  // namespace
}  // namespace support
