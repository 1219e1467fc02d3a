// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/images/resize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace trainer {
namespace {

using ::testing::ElementsAre;

// A piece at (x, y) whose pixel (i, j) has the value of `gray` in all channels.
ImagePiece Piece(PixelBox box, const std::vector<std::uint8_t>& gray) {
  ImagePiece piece{box, {}};
  for (const std::uint8_t value : gray) piece.pixels.insert(piece.pixels.end(), 3, value);
  return piece;
}

View Whole(const PixelBox& box) {
  return {static_cast<double>(box.x),
          static_cast<double>(box.y),
          static_cast<double>(box.width),
          static_cast<double>(box.height),
          box,
          false};
}

// The red channel of the result.
std::vector<int> Resized(const ImagePiece& piece, const View& view, int size) {
  std::vector<std::uint8_t> out(static_cast<std::size_t>(size * size * 3));
  Resize(piece, view, size, out);
  std::vector<int> red;
  for (std::size_t i = 0; i < out.size(); i += 3) red.push_back(out[i]);
  return red;
}

TEST(Resize, SameSizeIsACopy) {
  const PixelBox box{5, 7, 2, 2};
  EXPECT_THAT(Resized(Piece(box, {0, 100, 200, 255}), Whole(box), 2),
              ElementsAre(0, 100, 200, 255));
}

TEST(Resize, DoublingHasHalfPixelCentres) {
  const PixelBox box{0, 0, 2, 2};
  // Weights 1/4 and 3/4 between the pixels, the border beyond their centres.
  EXPECT_THAT(Resized(Piece(box, {0, 80, 0, 80}), Whole(box), 4),
              ElementsAre(0, 20, 60, 80, 0, 20, 60, 80, 0, 20, 60, 80, 0, 20, 60, 80));
}

TEST(Resize, HalvingIsTheMeanOfFour) {
  const PixelBox box{0, 0, 2, 2};
  EXPECT_THAT(Resized(Piece(box, {10, 20, 30, 40}), Whole(box), 1), ElementsAre(25));
}

TEST(Resize, ReadsNoPixelOutsideTheReadableOnes) {
  const ImagePiece piece = Piece({0, 0, 4, 1}, {255, 10, 30, 255});
  const View view{1, 0, 2, 1, {1, 0, 2, 1}, false};
  EXPECT_THAT(Resized(piece, view, 4),
              ::testing::Each(::testing::AllOf(::testing::Ge(10), ::testing::Le(30))));
}

TEST(Resize, ReadsAcrossTheViewWhereItMay) {
  const ImagePiece piece = Piece({0, 0, 4, 1}, {250, 10, 30, 250});
  const View view{1, 0, 2, 1, {0, 0, 4, 1}, false};
  EXPECT_THAT(Resized(piece, view, 4),
              ::testing::ElementsAreArray(
                  {70, 15, 25, 85, 70, 15, 25, 85, 70, 15, 25, 85, 70, 15, 25, 85}));
}

TEST(Resize, CommutesWithMirroring) {
  const PixelBox box{0, 0, 5, 1};
  const auto forward = Resized(Piece(box, {1, 50, 90, 20, 200}), Whole(box), 3);
  auto backward = Resized(Piece(box, {200, 20, 90, 50, 1}), Whole(box), 3);
  for (int row = 0; row < 3; ++row) {
    for (int column = 0; column < 3; ++column) {
      EXPECT_EQ(forward[static_cast<std::size_t>(row * 3 + column)],
                backward[static_cast<std::size_t>(row * 3 + 2 - column)]);
    }
  }
}

}  // namespace
}  // namespace trainer
