// SPDX-License-Identifier: Apache-2.0

#include "ddldata/painter.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace trainer {
namespace {

constexpr int kClasses = 10;

std::array<double, 3> MeanColor(const Picture& picture) {
  std::array<double, 3> mean{};
  for (std::size_t i = 0; i < picture.pixels.size(); ++i) mean[i % 3] += picture.pixels[i];
  for (double& channel : mean) channel /= static_cast<double>(picture.pixels.size()) / 3;
  return mean;
}

Picture PaintNumber(int class_index, std::uint64_t number) {
  Random random(3, RandomPurpose::kGenerate, number);
  return Paint(class_index, {48, 40}, random);
}

double SquaredDistance(const std::array<double, 3>& a, const std::array<double, 3>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < 3; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

// The nearest mean colour of a class, learnt from 1000 pictures and tried on 1000 others, must be
// near chance: 10 %.
TEST(Painter, MeanColorTellsNothingOfTheClass) {
  constexpr std::uint64_t kPictures = 1000;
  std::array<std::array<double, 3>, kClasses> means{};
  for (std::uint64_t i = 0; i < kPictures; ++i) {
    const auto color = MeanColor(PaintNumber(static_cast<int>(i % kClasses), i));
    for (std::size_t c = 0; c < 3; ++c) means[i % kClasses][c] += color[c] * kClasses / kPictures;
  }
  int right = 0;
  for (std::uint64_t i = kPictures; i < 2 * kPictures; ++i) {
    const auto color = MeanColor(PaintNumber(static_cast<int>(i % kClasses), i));
    std::size_t nearest = 0;
    for (std::size_t c = 1; c < kClasses; ++c) {
      if (SquaredDistance(color, means[c]) < SquaredDistance(color, means[nearest])) nearest = c;
    }
    right += nearest == i % kClasses ? 1 : 0;
  }
  EXPECT_LT(right, 150);  // 100 by chance, deviation 9.5
}

// With the same random numbers two classes differ in the object alone.
TEST(Painter, ClassesDifferWithinTheBoxOnly) {
  const Picture disc = PaintNumber(0, 5);
  const Picture star = PaintNumber(9, 5);
  EXPECT_EQ(disc.box, star.box);
  int inside = 0;
  for (int y = 0; y < disc.size.height; ++y) {
    for (int x = 0; x < disc.size.width; ++x) {
      const auto at = static_cast<std::size_t>(y * disc.size.width + x) * 3;
      if (disc.pixels[at] == star.pixels[at]) continue;
      ++inside;
      // Tilted corners reach a little over the box.
      EXPECT_GE(x + 1, disc.box.xmin * 48 - 3);
      EXPECT_LE(x, disc.box.xmax * 48 + 3);
      EXPECT_GE(y + 1, disc.box.ymin * 40 - 3);
      EXPECT_LE(y, disc.box.ymax * 40 + 3);
    }
  }
  EXPECT_GT(inside, 100);
}

TEST(Painter, SameNumbersPaintTheSamePicture) {
  EXPECT_EQ(PaintNumber(3, 8).pixels, PaintNumber(3, 8).pixels);
  EXPECT_NE(PaintNumber(3, 8).pixels, PaintNumber(3, 9).pixels);
}

TEST(Painter, EachClassHasADescriptionOfItsOwn) {
  std::set<std::string> names;
  for (int c = 0; c < kMaxPaintedClasses; ++c) names.insert(DescribePaintedClass(c));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kMaxPaintedClasses));
}

}  // namespace
}  // namespace trainer
