// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "tests/trainer/backend/each_backend.h"

namespace trainer {
namespace {

constexpr std::int64_t kHeight = 5;
constexpr std::int64_t kWidth = 7;

class InputTransformOn : public EachBackend {
 protected:
  void SetUp() override {
    Random random(1, RandomPurpose::kSynthetic, 0);
    pixels_.resize(static_cast<std::size_t>(3 * kHeight * kWidth * 3));
    for (std::uint8_t& pixel : pixels_) pixel = static_cast<std::uint8_t>(random.Below(256));
  }

  Tensor Transform(const std::vector<std::uint8_t>& mirror, const Floats& lambda = {}) {
    const auto samples = static_cast<std::int64_t>(mirror.size());
    const auto op = device_.backend().MakeInputTransform({samples, 3, kHeight, kWidth});
    const Tensor dst = device_.Make(op->dst());
    op->Forward(device_.Upload(pixels_), device_.Upload(mirror),
                lambda.empty() ? nullptr : device_.Upload(lambda), dst, device_.stream());
    device_.stream().Synchronize();
    return dst;
  }

  // x of ops.h for a sample that is not mirrored.
  double Normalized(std::size_t n, std::size_t c, std::size_t h, std::size_t w) const {
    const double mean[] = {123.68, 116.28, 103.53};
    const double deviation[] = {58.395, 57.120, 57.385};
    return (pixels_[((n * kHeight + h) * kWidth + w) * 3 + c] - mean[c]) / deviation[c];
  }

  template <typename Expected>
  void ExpectPixels(const Floats& values, std::size_t samples, const Expected& expected) {
    ASSERT_EQ(values.size(), samples * 3 * kHeight * kWidth);
    std::size_t i = 0;
    for (std::size_t n = 0; n < samples; ++n) {
      for (std::size_t c = 0; c < 3; ++c) {
        for (std::size_t h = 0; h < kHeight; ++h) {
          for (std::size_t w = 0; w < kWidth; ++w) {
            EXPECT_NEAR(values[i++], expected(n, c, h, w), 3 * Tolerance());
          }
        }
      }
    }
  }

  std::vector<std::uint8_t> pixels_;
};

TEST_P(InputTransformOn, NormalizesAndMirrors) {
  const Floats values = device_.Export(Transform({0, 1, 0}));
  ExpectPixels(values, 3, [&](std::size_t n, std::size_t c, std::size_t h, std::size_t w) {
    return Normalized(n, c, h, n == 1 ? kWidth - 1 - w : w);
  });
}

TEST_P(InputTransformOn, OfWeightsOfOneIsThatOfNone) {
  EXPECT_EQ(device_.Export(Transform({0, 1, 0}, {1, 1, 1})), device_.Export(Transform({0, 1, 0})));
}

TEST_P(InputTransformOn, MixesEachSampleByItsOwnWeightWithItsPartnerFromTheOtherEnd) {
  for (const Floats& lambda :
       {Floats{0.25F, 0.5F, 0.75F}, Floats{1, 0.1F, 0}, Floats{0, 1, 0.9F}}) {
    const Floats values = device_.Export(Transform({0, 0, 1}, lambda));
    const auto x = [&](std::size_t n, std::size_t c, std::size_t h, std::size_t w) {
      return Normalized(n, c, h, n == 2 ? kWidth - 1 - w : w);
    };
    ExpectPixels(values, 3, [&](std::size_t n, std::size_t c, std::size_t h, std::size_t w) {
      return lambda[n] * x(n, c, h, w) + (1 - lambda[n]) * x(2 - n, c, h, w);
    });
  }
}

TEST_P(InputTransformOn, FillsPaddedChannelsWithZeros) {
  const Tensor dst = Transform({1, 0});
  const auto bytes = device_.Download<std::uint8_t>(dst.data, dst.desc.bytes);
  const std::size_t size = SizeOf(dst.desc.dtype);
  std::int64_t set = 0;  // no pixel is exactly the mean
  for (std::size_t i = 0; i < bytes.size(); i += size) {
    set += std::any_of(&bytes[i], &bytes[i] + size, [](std::uint8_t byte) { return byte != 0; });
  }
  EXPECT_EQ(set, dst.desc.shape.elements());
}

INSTANTIATE_ON_EACH_BACKEND(InputTransformOn);

}  // namespace
}  // namespace trainer
