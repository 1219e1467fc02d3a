// SPDX-License-Identifier: Apache-2.0

#include "ddldata/shrink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/trainer/data/data_fixture.h"

namespace trainer {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// In double precision, straight from the definition.
std::vector<std::uint8_t> ShrinkByDefinition(const std::vector<std::uint8_t>& pixels,
                                             ImageSize size, ImageSize target) {
  const auto weight = [](int j, int i, double scale) {
    return std::max(0.0, 1 - std::abs((j + 0.5) - (i + 0.5) * scale) / scale);
  };
  const double x_scale = static_cast<double>(size.width) / target.width;
  const double y_scale = static_cast<double>(size.height) / target.height;
  std::vector<std::uint8_t> small;
  for (int y = 0; y < target.height; ++y) {
    for (int x = 0; x < target.width; ++x) {
      for (int color = 0; color < 3; ++color) {
        double sum = 0;
        double weights = 0;
        for (int row = 0; row < size.height; ++row) {
          for (int column = 0; column < size.width; ++column) {
            const double one = weight(column, x, x_scale) * weight(row, y, y_scale);
            sum += one * pixels[static_cast<std::size_t>((row * size.width + column) * 3 + color)];
            weights += one;
          }
        }
        small.push_back(static_cast<std::uint8_t>(std::lround(sum / weights)));
      }
    }
  }
  return small;
}

TEST(SizeWithShorterSide, KeepsTheProportions) {
  EXPECT_EQ(SizeWithShorterSide({500, 375}, 256), (ImageSize{341, 256}));
  EXPECT_EQ(SizeWithShorterSide({375, 500}, 256), (ImageSize{256, 341}));
  EXPECT_EQ(SizeWithShorterSide({3, 1000}, 1), (ImageSize{1, 333}));
}

TEST(Shrink, IsTheMeanByATriangle) {
  for (const auto& [size, target] : {std::pair<ImageSize, ImageSize>{{40, 30}, {13, 10}},
                                     {{31, 64}, {31, 17}},
                                     {{9, 7}, {1, 1}},
                                     {{100, 3}, {33, 2}}}) {
    const std::vector<std::uint8_t> pixels = MakePixels(size, 3, 5);
    const std::vector<std::uint8_t> small = Shrink(pixels, size, target);
    const std::vector<std::uint8_t> expected = ShrinkByDefinition(pixels, size, target);
    ASSERT_EQ(small.size(), expected.size());
    for (std::size_t i = 0; i < small.size(); ++i) EXPECT_NEAR(small[i], expected[i], 1) << i;
  }
}

TEST(Shrink, KeepsWhatIsEvenAndWhatHasItsSizeAlready) {
  const std::vector<std::uint8_t> white(40 * 30 * 3, 255);
  EXPECT_THAT(Shrink(white, {40, 30}, {17, 11}), Each(255));
  const std::vector<std::uint8_t> row = {1, 2, 3, 40, 50, 60, 200, 201, 202};
  EXPECT_THAT(Shrink(row, {3, 1}, {3, 1}), ElementsAre(1, 2, 3, 40, 50, 60, 200, 201, 202));
}

}  // namespace
}  // namespace trainer
