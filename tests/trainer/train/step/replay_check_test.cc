// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/step/replay_check.h"

#include <array>
#include <limits>

#include "tests/support/test.h"
#include "tests/trainer/train/wrong_backend.h"

namespace trainer {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <typename T, std::size_t kCount>
PassDifference Passes(const std::array<T, kCount>& first, const std::array<T, kCount>& second,
                      DType dtype) {
  return ComparePasses(reinterpret_cast<const std::byte*>(first.data()),
                       reinterpret_cast<const std::byte*>(second.data()), kCount, dtype);
}

TEST(ComparePasses, CountsValuesWithOtherBitsAndMeasuresThem) {
  const PassDifference found = Passes<float, 4>({3, 0, 4, 0}, {3, 0.25F, 3.5F, 0}, DType::kFloat32);
  EXPECT_EQ(found.values, 2);
  EXPECT_EQ(found.largest, 0.5);
  EXPECT_NEAR(found.relative, std::sqrt(0.25 * 0.25 + 0.5 * 0.5) / 5, 1e-12);
  EXPECT_TRUE(found.is_finite);
}

TEST(ComparePasses, IsRelativeToTheLargerNorm) {
  EXPECT_EQ((Passes<float, 2>({1, 1}, {0, 0}, DType::kFloat32).relative), 1);
  EXPECT_EQ((Passes<float, 2>({0, 0}, {1, 1}, DType::kFloat32).relative), 1);
}

TEST(ComparePasses, FindsNothingInTheSameBits) {
  const PassDifference found =
      Passes<float, 3>({1, NAN, -kInfinity}, {1, NAN, -kInfinity}, DType::kFloat32);
  EXPECT_EQ(found.values, 0);
  EXPECT_EQ(found.relative, 0);
}

TEST(ComparePasses, ASignOfZeroIsOtherBitsAndNoDistance) {
  const PassDifference found = Passes<float, 2>({0, 0}, {-0.F, 0}, DType::kFloat32);
  EXPECT_EQ(found.values, 1);
  EXPECT_EQ(found.largest, 0);
  EXPECT_EQ(found.relative, 0);
}

TEST(ComparePasses, WhatIsNoNumberInOnePassAloneIsFarOff) {
  for (const float bad : {kInfinity, -kInfinity, NAN}) {
    for (const auto& [a, b] : {std::pair(bad, 1.F), std::pair(1.F, bad)}) {
      const PassDifference found = Passes<float, 2>({2, a}, {2, b}, DType::kFloat32);
      EXPECT_EQ(found.values, 1);
      EXPECT_EQ(found.largest, kInfinity);
      EXPECT_EQ(found.relative, kInfinity);
      EXPECT_FALSE(found.is_finite);
    }
  }
}

TEST(ComparePasses, WhatIsNoNumberInBothPassesIsNotMeasured) {
  const PassDifference found = Passes<float, 2>({2, NAN}, {1, kInfinity}, DType::kFloat32);
  EXPECT_EQ(found.values, 2);
  EXPECT_EQ(found.largest, 1);
  EXPECT_EQ(found.relative, 0.5);
  EXPECT_FALSE(found.is_finite);
}

TEST(ComparePasses, Reads16BitTypes) {
  using Bits = std::array<std::uint16_t, 2>;
  const PassDifference half = Passes(Bits{0x3c00, 0x4000}, Bits{0x3c00, 0x3800}, DType::kFloat16);
  EXPECT_EQ(half.values, 1);
  EXPECT_EQ(half.largest, 1.5);  // 2 and 0.5
  const PassDifference bfloat =
      Passes(Bits{0x3f80, 0x4000}, Bits{0x3f80, 0x3f00}, DType::kBFloat16);
  EXPECT_EQ(bfloat.values, 1);
  EXPECT_EQ(bfloat.largest, 1.5);
}

// A network whose gradients and statistics are filled by hand, as two passes would.
class ReplayCheckTest : public testing::TestWithParam<bool> {
 protected:
  explicit ReplayCheckTest(double repeat_error = 0)
      : backend_("reference", {.is_host = GetParam(), .repeat_error = repeat_error}) {
    check_.Begin(*stream_);
    Fill(1);
    for (std::size_t i = 0; i < statistics(); ++i) Statistics()[i] = 2;
    check_.Keep(*stream_);
    Fill(1);
    for (std::size_t i = 0; i < statistics(); ++i) Statistics()[i] = 2;
  }

  void Fill(float value) { std::fill_n(network_.gradients().fp32, network_.elements(), value); }
  float* Statistics() { return reinterpret_cast<float*>(network_.statistics().data()); }
  std::size_t statistics() const { return network_.statistics().bytes() / sizeof(float); }
  const Parameter& Named(const std::string& name) const {
    for (const Parameter& parameter : network_.parameters()) {
      if (parameter.name == name) return parameter;
    }
    throw Error(EX_SOFTWARE, "no parameter " + name);
  }
  float& Gradient(const std::string& name) { return network_.gradients().fp32[Named(name).begin]; }
  float& Statistic(const std::string& name) { return Statistics()[Named(name).begin]; }
  std::optional<ReplayDifference> Compare() { return check_.Compare(*stream_); }

  WrongBackend backend_;
  const std::unique_ptr<Stream> stream_ = backend_.MakeStream();
  Network network_{backend_, {"resnet_tiny", 2, 32, 32, 4, 0}};
  ReplayCheck check_{backend_, network_};
};

TEST_P(ReplayCheckTest, FindsNothingWherePassesAreAlike) { EXPECT_FALSE(Compare()); }

TEST_P(ReplayCheckTest, EachPassStartsFromTheStatisticsOfBefore) {
  Statistics()[0] = 7;
  check_.Begin(*stream_);
  Statistics()[0] = 8;
  check_.Keep(*stream_);
  EXPECT_EQ(Statistics()[0], 7);
}

TEST_P(ReplayCheckTest, FindsAGradientOfEachLayer) {
  for (const Parameter& parameter : network_.parameters()) {
    if (parameter.spec.statistic) continue;
    Gradient(parameter.name) = 1.5F;
    const auto found = Compare();
    ASSERT_TRUE(found) << parameter.name;
    EXPECT_EQ(found->name, parameter.name);
    EXPECT_FALSE(found->is_statistic);
    EXPECT_EQ(found->count, parameter.count);
    EXPECT_EQ(found->found.values, 1);
    EXPECT_EQ(found->found.largest, 0.5);
    EXPECT_EQ(found->others, 0);
    Gradient(parameter.name) = 1;
  }
  EXPECT_FALSE(Compare());
}

TEST_P(ReplayCheckTest, NamesTheGradientThatBackwardComputesFirst) {
  Gradient("conv1.weight") = 2;
  Gradient("fc.weight") = 2;
  Gradient("bn1.bias") = 2;
  const auto found = Compare();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "fc.weight");
  EXPECT_EQ(found->others, 2);
}

TEST_P(ReplayCheckTest, NamesAStatisticBeforeAllGradientsForForwardWasWrong) {
  Gradient("fc.weight") = 2;
  Statistic("layer1.0.bn2.running_var") = 3;
  Statistic("bn1.running_mean") = 3;
  const auto found = Compare();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "bn1.running_mean");
  EXPECT_TRUE(found->is_statistic);
  EXPECT_EQ(found->others, 2);
}

TEST_P(ReplayCheckTest, TakesAsMuchMemoryAsItSays) {
  std::size_t bytes = 0;
  std::size_t largest = 0;
  for (const Parameter& parameter : network_.parameters()) {
    bytes += parameter.count * sizeof(float);
    largest = std::max(largest, parameter.count * sizeof(float));
  }
  const ParameterLayout layout = DefineNetwork(backend_, {"resnet_tiny", 2, 32, 32, 4, 0}).layout;
  EXPECT_EQ(ReplayCheck::BytesFor(layout, false), bytes + largest);
  EXPECT_EQ(ReplayCheck::BytesFor(layout, true), bytes + network_.statistics().bytes());
}

// On a back end that promises less than the same bits.
class ReplayCheckWithTolerance : public ReplayCheckTest {
 protected:
  ReplayCheckWithTolerance() : ReplayCheckTest(0.01) {}

  // So that the whole gradient is so far from what it was, by its norm.
  void MoveBy(const std::string& name, float relative) {
    const Parameter& parameter = Named(name);
    std::fill_n(network_.gradients().fp32 + parameter.begin, parameter.count, 1 + relative);
  }
};

TEST_P(ReplayCheckWithTolerance, ForgivesWhatIsWithinIt) {
  MoveBy("fc.weight", 0.009F);
  EXPECT_FALSE(Compare());
}

TEST_P(ReplayCheckWithTolerance, FindsWhatIsBeyondItInOneParameterAlone) {
  MoveBy("fc.weight", 0.009F);
  MoveBy("bn1.bias", 0.011F);
  const auto found = Compare();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "bn1.bias");
  EXPECT_EQ(found->others, 0);
}

TEST_P(ReplayCheckWithTolerance, FindsWhatIsNoNumberInOnePass) {
  Gradient("fc.weight") = NAN;
  EXPECT_TRUE(Compare());
}

INSTANTIATE_TEST_SUITE_P(Memory, ReplayCheckTest, testing::Bool());
INSTANTIATE_TEST_SUITE_P(Memory, ReplayCheckWithTolerance, testing::Bool());

ReplayDifference Difference() {
  return {
      "layer1.0.conv1.weight", false, 4096, {.values = 13, .largest = 0.5, .relative = 0.031}, 0};
}

TEST(DescribeReplayDifference, SaysWhoWhatAndWhatToDo) {
  EXPECT_EQ(DescribeReplayDifference(12, Difference(), "rank 3 on n7", "n7",
                                     "NVIDIA H200 at 0000:1b:00.0, serial number 165", 1, 8),
            "step 12: rank 3 on n7 (NVIDIA H200 at 0000:1b:00.0, serial number 165) has computed "
            "two results from the same weights and images: the gradient of layer1.0.conv1.weight "
            "differs in 13 of 4096 values, by 0.5 at most, 0.031 of its norm; the step was not "
            "applied: its GPU, processor or memory is failing; give the same command again without "
            "that node (sbatch --exclude=n7), and test the node (NVIDIA's GPUs: dcgmi diag -r 3)");
}

TEST(DescribeReplayDifference, SaysHowMuchElseDiffers) {
  ReplayDifference difference = Difference();
  difference.others = 9;
  difference.is_statistic = true;
  difference.name = "bn1.running_mean";
  EXPECT_THAT(
      DescribeReplayDifference(1, difference, "rank 0", "", "", 1, 1),
      AllOf(StartsWith("step 1: rank 0 has computed"), HasSubstr(": bn1.running_mean differs in"),
            HasSubstr("and 9 parameters and statistics more; the step"),
            HasSubstr("give the same command again, and test the node"),
            Not(HasSubstr("--exclude"))));
}

TEST(DescribeReplayDifference, OfAllRanksIsNoFaultOfAGpu) {
  EXPECT_THAT(
      DescribeReplayDifference(1, Difference(), "rank 0", "n1", "", 4, 4),
      AllOf(HasSubstr("so do all 4 ranks, which points to software"), Not(HasSubstr("--exclude"))));
  EXPECT_THAT(DescribeReplayDifference(1, Difference(), "rank 0", "n1", "", 3, 4),
              HasSubstr("--exclude=n1"));
}

}  // namespace
}  // namespace trainer
