// SPDX-License-Identifier: Apache-2.0

#include "trainer/model/init.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace trainer {
namespace {

using testing::Each;

ParameterSpec Spec(const Shape& shape, Init init) {
  return {"x", shape, RowMajor(shape, DType::kFloat32), init, false, false};
}

// The expected bits were computed by a separate program (Python) that follows the text of init.h.
TEST(Init, HasTheBitsOfTheDescription) {
  const auto conv1 =
      InitialValues(Spec({64, 3, 7, 7}, Init::kVarianceScaling), 0, 1, WeightInit::kFanOut);
  EXPECT_FLOAT_EQ(conv1[0], 0x1.770ad0p-6F);
  EXPECT_FLOAT_EQ(conv1[1], 0x1.ec40a4p-7F);
  EXPECT_FLOAT_EQ(conv1[2], -0x1.4460eep-6F);
  EXPECT_FLOAT_EQ(conv1[3], 0x1.1a3f72p-7F);

  const auto fc = InitialValues(Spec({1000, 2048}, Init::kVarianceScaling), 265,
                                (std::uint64_t{7} << 32) | 9, WeightInit::kFanIn);
  EXPECT_FLOAT_EQ(fc[0], -0x1.9e200cp-5F);
  EXPECT_FLOAT_EQ(fc[1], 0x1.3b4e8ep-6F);
}

TEST(Init, VarianceIsTwoOverFanAndNothingIsFarOut) {
  const auto values =
      InitialValues(Spec({128, 64, 3, 3}, Init::kVarianceScaling), 17, 3, WeightInit::kFanOut);
  const double fan = 128 * 3 * 3;
  const double stddev = std::sqrt(2 / fan);
  const auto count = static_cast<double>(values.size());
  double sum = 0;
  double squares = 0;
  for (const float value : values) {
    sum += value;
    squares += double{value} * value;
    EXPECT_LE(std::abs(value), 2.2738 * stddev);  // 2 / 0.8796...
  }
  EXPECT_NEAR(sum / count, 0, 5 * stddev / std::sqrt(count));
  EXPECT_NEAR(squares / count / (stddev * stddev), 1, 0.02);
}

TEST(Init, FanInAndFanOutDifferInScaleOnly) {
  const ParameterSpec spec = Spec({32, 8, 3, 3}, Init::kVarianceScaling);
  const auto fan_in = InitialValues(spec, 4, 5, WeightInit::kFanIn);
  const auto fan_out = InitialValues(spec, 4, 5, WeightInit::kFanOut);
  for (std::size_t i = 0; i < fan_in.size(); ++i) EXPECT_FLOAT_EQ(fan_in[i], 2 * fan_out[i]);
}

TEST(Init, ParametersAndSeedsDoNotShareNumbers) {
  const ParameterSpec spec = Spec({4, 4}, Init::kVarianceScaling);
  const auto values = InitialValues(spec, 4, 5, WeightInit::kFanIn);
  EXPECT_NE(values, InitialValues(spec, 5, 5, WeightInit::kFanIn));
  EXPECT_NE(values, InitialValues(spec, 4, 6, WeightInit::kFanIn));
  EXPECT_EQ(values, InitialValues(spec, 4, 5, WeightInit::kFanIn));
}

TEST(Init, OnesAndZerosAreThat) {
  EXPECT_THAT(InitialValues(Spec({5}, Init::kOnes), 0, 1, WeightInit::kFanIn), Each(1.0F));
  EXPECT_THAT(InitialValues(Spec({5}, Init::kZeros), 0, 1, WeightInit::kFanIn), Each(0.0F));
}

}  // namespace
}  // namespace trainer
