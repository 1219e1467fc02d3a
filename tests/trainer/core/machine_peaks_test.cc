// SPDX-License-Identifier: Apache-2.0

#include "trainer/core/machine_peaks.h"

#include <gtest/gtest.h>

namespace trainer {
namespace {

TEST(ParsePeaks, TakesGigaFlopsAndGigaBytes) {
  const auto peaks = ParsePeaks("989000:4800");
  ASSERT_TRUE(peaks);
  EXPECT_DOUBLE_EQ(peaks->flops, 989e12);
  EXPECT_DOUBLE_EQ(peaks->bytes_per_second, 4800e9);
  EXPECT_DOUBLE_EQ(ParsePeaks("0.5:1e3")->flops, 0.5e9);
}

TEST(ParsePeaks, TakesNothingElse) {
  for (const char* text : {"", ":", "1", "1:", ":1", "0:1", "1:0", "-1:1", "1:-1", "1:2:3", " 1:2",
                           "1:2 ", "nan:1", "1:inf", "1e308:1", "a:b"}) {
    EXPECT_FALSE(ParsePeaks(text)) << text;
  }
}

}  // namespace
}  // namespace trainer
