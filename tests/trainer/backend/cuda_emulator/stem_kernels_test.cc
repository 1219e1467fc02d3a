// SPDX-License-Identifier: Apache-2.0
//
// What the stem's pooled batch norm does with what is not a number, which no image can bring about.

#include "trainer/backend/cuda/stem/stem_kernels.h"

#include "tests/support/test.h"
#include "tests/trainer/backend/cuda_emulator/device_vector.h"

namespace trainer {
namespace {

using cuda_emulator::DeviceVector;

using testing::IsNan;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr int kChannels = 8;

// One window over an image of 2x2, all channels alike, in inference: mean 0, variance 1.
class OneWindow : public testing::Test {
 protected:
  void Pool(const DeviceVector<float>& pixels) {
    DeviceVector<float> src;
    for (const float pixel : pixels) src.insert(src.end(), kChannels, pixel);
    NormShape norm{.pixels = 4, .channels = kChannels, .padded = kChannels};
    DeviceVector<float> zeros(kChannels, 0);
    DeviceVector<float> ones(kChannels, 1);
    DeviceVector<float> scratch(static_cast<std::size_t>(NormScratchFloats(norm)));
    const NormParameters parameters = {.scale = ones.data(),
                                       .shift = zeros.data(),
                                       .running_mean = zeros.data(),
                                       .running_variance = ones.data()};
    PooledNormForward call;
    call.norm.src.values = src.data();
    call.norm.scratch = scratch.data();
    call.dst = dst_.data();
    call.chosen = chosen_.data();
    call.winners = winners_.data();
    call.mask = mask_.data();
    RunPooledNormForward(norm, {1, 2, 2}, parameters, call, nullptr);
  }

  DeviceVector<float> dst_ = DeviceVector<float>(kChannels);
  DeviceVector<float> chosen_ = DeviceVector<float>(kChannels);
  DeviceVector<std::uint8_t> winners_ = DeviceVector<std::uint8_t>(kChannels);
  DeviceVector<std::uint8_t> mask_ = DeviceVector<std::uint8_t>(1);
};

// The places of the window's first row and column are padding.
TEST_F(OneWindow, TakesTheLargest) {
  Pool({1, 3, 2, -1});
  EXPECT_THAT(dst_, Each(3));
  EXPECT_THAT(winners_, Each(5));
  EXPECT_EQ(mask_[0], 0xFF);
}

TEST_F(OneWindow, LetsNothingThroughThatIsNotPositive) {
  Pool({-1, 0, -2, -3});
  EXPECT_THAT(dst_, Each(0));
  EXPECT_THAT(winners_, Each(kNobody));
  EXPECT_EQ(mask_[0], 0);
}

TEST_F(OneWindow, KeepsWhatIsNotANumberBeforeAndBehindNumbers) {
  for (const DeviceVector<float>& pixels : std::vector<DeviceVector<float>>{
           {kNaN, 3, 2, 1}, {1, kNaN, 3, 2}, {1, 2, 3, kNaN}, {-1, kNaN, -1, -1}}) {
    Pool(pixels);
    EXPECT_THAT(dst_, Each(IsNan()));
    EXPECT_THAT(chosen_, Each(IsNan()));
    EXPECT_EQ(mask_[0], 0xFF);  // its gradient goes on, so that the step is seen to be bad
  }
}

}  // namespace
}  // namespace trainer
