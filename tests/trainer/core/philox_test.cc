// SPDX-License-Identifier: Apache-2.0

#include "trainer/core/philox.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "trainer/core/error.h"

namespace trainer {
namespace {

using Block = std::array<std::uint32_t, 4>;

// Random123, tests/kat_vectors, "philox4x32 10".
TEST(Philox, MatchesRandom123KnownAnswers) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(Philox4x32({ones, ones, ones, ones}, {ones, ones}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, FollowsItsStatedCounterLayout) {
  const std::uint64_t seed = 0x1122334455667788;
  const std::uint64_t index = 0xAABBCCDD00112233;
  Random random(seed, RandomPurpose::kAugment, index);
  for (std::uint32_t position = 0; position < 3; ++position) {
    const Block block = Philox4x32({position, 3, 0x00112233, 0xAABBCCDD}, {0x55667788, 0x11223344});
    for (const std::uint32_t word : block) EXPECT_EQ(random.Next(), word);
  }
}

TEST(Random, DiffersBySeedPurposeAndIndex) {
  const std::uint32_t first = Random(1, RandomPurpose::kInit, 0).Next();
  EXPECT_NE(Random(2, RandomPurpose::kInit, 0).Next(), first);
  EXPECT_NE(Random(1, RandomPurpose::kShuffle, 0).Next(), first);
  EXPECT_NE(Random(1, RandomPurpose::kInit, 1).Next(), first);
}

TEST(Random, BelowStaysInRangeAndReachesAllValues) {
  Random random(3, RandomPurpose::kShuffle, 0);
  std::array<int, 7> counts{};
  for (int i = 0; i < 7000; ++i) ++counts.at(random.Below(7));
  for (const int count : counts) EXPECT_NEAR(count, 1000, 150);
  EXPECT_EQ(random.Below(1), 0U);
  EXPECT_THROW(random.Below(0), Error);
}

struct Moments {
  double mean;
  double variance;
};

// Of 200000 draws: the standard error of the mean is below 0.003 of a deviation.
Moments Measure(const std::function<double(Random&)>& draw) {
  Random random(11, RandomPurpose::kInit, 5);
  const int draws = 200000;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < draws; ++i) {
    const double x = draw(random);
    sum += x;
    squares += x * x;
  }
  const double mean = sum / draws;
  return {mean, squares / draws - mean * mean};
}

TEST(Random, DistributionsHaveTheirMoments) {
  const Moments uniform = Measure([](Random& random) { return random.Uniform(); });
  EXPECT_NEAR(uniform.mean, 0.5, 0.005);
  EXPECT_NEAR(uniform.variance, 1.0 / 12, 0.001);

  const Moments normal = Measure([](Random& random) { return random.Normal(); });
  EXPECT_NEAR(normal.mean, 0, 0.015);
  EXPECT_NEAR(normal.variance, 1, 0.02);

  // Variance of a standard normal cut at 2: 1 - 4 phi(2) / (2 Phi(2) - 1) = 0.77374.
  const Moments truncated = Measure([](Random& random) { return random.TruncatedNormal(); });
  EXPECT_NEAR(truncated.mean, 0, 0.015);
  EXPECT_NEAR(truncated.variance, 0.77374, 0.015);

  for (const double shape : {0.2, 1.0, 3.5}) {
    const Moments gamma = Measure([=](Random& random) { return random.Gamma(shape); });
    EXPECT_NEAR(gamma.mean, shape, 0.02 * std::sqrt(shape));
    EXPECT_NEAR(gamma.variance, shape, 0.05 * shape);
  }

  // Beta(a, a): mean 1/2, variance 1 / (4 (2a + 1)).
  const Moments beta = Measure([](Random& random) { return random.Beta(0.2, 0.2); });
  EXPECT_NEAR(beta.mean, 0.5, 0.005);
  EXPECT_NEAR(beta.variance, 1 / (4 * 1.4), 0.003);
}

TEST(Random, BetaOfTinyParametersIsANumber) {
  Random random(1, RandomPurpose::kMixup, 0);
  for (int i = 0; i < 1000; ++i) {
    const double x = random.Beta(1e-4, 1e-4);
    EXPECT_GE(x, 0);
    EXPECT_LE(x, 1);
  }
}

TEST(Random, TruncatedNormalStaysWithinTwoDeviations) {
  Random random(1, RandomPurpose::kInit, 0);
  for (int i = 0; i < 10000; ++i) EXPECT_LE(std::abs(random.TruncatedNormal()), 2);
}

}  // namespace
}  // namespace trainer
