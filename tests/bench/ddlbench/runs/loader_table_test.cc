// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/runs/loader_table.h"

#include <gtest/gtest.h>

#include <vector>

namespace bench {
namespace {

TEST(FormatLoader, HasTheMedianOfTheRoundsAndThatOfAThread) {
  LoaderOptions options;
  options.rounds = 3;
  options.steps = 20;
  const std::vector<LoaderSpeeds> all = {{1, {100, 120, 80}, {}}, {4, {400, 300, 360}, {}}};
  EXPECT_EQ(FormatLoader(options, all, 2),
            "2 ranks, each with batches of 256 images of 224 pixels; 3 rounds of 20 steps\n\n"
            "| threads | images/s  | per thread | min       | max       |\n"
            "| ------- | --------- | ---------- | --------- | --------- |\n"
            "| 1       | 100.0     | 50.0       | 80.0      | 120.0     |\n"
            "| 4       | 360.0     | 45.0       | 300.0     | 400.0     |\n");
}

TEST(FormatLoader, HasTheShareOfTheRateOfAllRanksAndTheMedianWait) {
  LoaderOptions options;
  options.rounds = 3;
  options.take_rate = 200;
  const std::vector<LoaderSpeeds> all = {{4, {400, 300, 360}, {0.5, 2, 1.25}}};
  EXPECT_EQ(
      FormatLoader(options, all, 2),
      "2 ranks, each with batches of 256 images of 224 pixels, taken at 200 images/s; "
      "3 rounds of 20 steps\n\n"
      "| threads | images/s  | per thread | min       | max       | % of rate | waited, s |\n"
      "| ------- | --------- | ---------- | --------- | --------- | --------- | --------- |\n"
      "| 4       | 360.0     | 45.0       | 300.0     | 400.0     | 90.0      | 1.250     |\n");
}

}  // namespace
}  // namespace bench
