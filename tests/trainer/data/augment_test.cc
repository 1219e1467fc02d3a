// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/augment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace trainer {
namespace {

Random NumbersOf(std::uint64_t sample) { return {1, RandomPurpose::kAugment, sample}; }

TEST(Augment, CropsKeepAreaAspectAndPlace) {
  const ImageSize image{500, 375};
  double smallest = 1;
  double largest = 0;
  for (std::uint64_t sample = 0; sample < 2000; ++sample) {
    Random random = NumbersOf(sample);
    const PixelBox crop = RandomCrop(image, {}, random);
    ASSERT_GE(crop.x, 0);
    ASSERT_GE(crop.y, 0);
    ASSERT_LE(crop.x + crop.width, image.width);
    ASSERT_LE(crop.y + crop.height, image.height);
    const double area = static_cast<double>(crop.width) * crop.height / (500.0 * 375.0);
    ASSERT_GE(area, 0.05);
    ASSERT_LE(area, 1.0);
    smallest = std::min(smallest, area);
    largest = std::max(largest, area);
    const double aspect = static_cast<double>(crop.width) / crop.height;
    ASSERT_NEAR(aspect, 1.04, 0.30);  // [0.75, 1.33] and rounding
  }
  EXPECT_LT(smallest, 0.11);  // at least a tenth of the image, which is the object here
  EXPECT_GT(largest, 0.9);
}

TEST(Augment, CropsCoverATenthOfTheObject) {
  const ImageSize image{400, 300};
  const std::vector<BoundingBox> boxes = {{0.5F, 0.5F, 0.75F, 1.0F}};  // 200,150 to 300,300
  for (std::uint64_t sample = 0; sample < 1000; ++sample) {
    Random random = NumbersOf(sample);
    const PixelBox crop = RandomCrop(image, boxes, random);
    const int width = std::min(crop.x + crop.width, 300) - std::max(crop.x, 200);
    const int height = std::min(crop.y + crop.height, 300) - std::max(crop.y, 150);
    ASSERT_GT(width, 0);
    ASSERT_GE(width * height, 1500);
  }
}

TEST(Augment, TakesTheWholeImageWhenNoCropFits) {
  Random random = NumbersOf(0);
  // Ten times as wide as high: no crop of 5 % with such an aspect ratio is found at height 10.
  EXPECT_EQ(RandomCrop({1000, 10}, {}, random), (PixelBox{0, 0, 1000, 10}));
  const std::vector<BoundingBox> no_pixels = {{0.5F, 0.5F, 0.5F, 0.5F}};
  EXPECT_EQ(RandomCrop({100, 100}, no_pixels, random), (PixelBox{0, 0, 100, 100}));
}

TEST(Augment, SmallestImageHasACrop) {
  Random random = NumbersOf(0);
  EXPECT_EQ(RandomCrop({1, 1}, {}, random), (PixelBox{0, 0, 1, 1}));
}

TEST(Augment, MirrorsHalfOfTheSamples) {
  int mirrored = 0;
  for (std::uint64_t sample = 0; sample < 4000; ++sample) {
    Random random = NumbersOf(sample);
    mirrored += TrainingView({64, 64}, {}, random).mirror ? 1 : 0;
  }
  EXPECT_NEAR(mirrored, 2000, 130);  // four standard deviations
}

TEST(Augment, SameSampleGetsTheSameView) {
  Random first = NumbersOf(12);
  Random second = NumbersOf(12);
  const View a = TrainingView({200, 100}, {}, first);
  const View b = TrainingView({200, 100}, {}, second);
  EXPECT_EQ(a.readable, b.readable);
  EXPECT_EQ(a.mirror, b.mirror);
}

TEST(Augment, CentreIsThatOfTheImageResizedTo256) {
  const View same = CentreView({256, 256}, 224);
  EXPECT_DOUBLE_EQ(same.x, 16);
  EXPECT_DOUBLE_EQ(same.y, 16);
  EXPECT_DOUBLE_EQ(same.width, 224);
  // 512 x 256: the view is in the middle of the wide side.
  const View wide = CentreView({512, 256}, 224);
  EXPECT_DOUBLE_EQ(wide.x, 144);
  EXPECT_DOUBLE_EQ(wide.height, 224);
  // 500 x 375 becomes 341 x 256 (truncated): left (341 - 224) / 2 = 58, top 16.
  const View photo = CentreView({500, 375}, 224);
  EXPECT_DOUBLE_EQ(photo.x, 58 * 500.0 / 341);
  EXPECT_DOUBLE_EQ(photo.y, 16 * 375.0 / 256);
  EXPECT_DOUBLE_EQ(photo.width, 224 * 500.0 / 341);
  EXPECT_EQ(photo.readable, (PixelBox{0, 0, 500, 375}));
  EXPECT_FALSE(photo.mirror);
}

}  // namespace
}  // namespace trainer
