// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/images/image_loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/trainer/data/data_fixture.h"

namespace trainer {
namespace {

// The whole image, made smaller by the decoder.
ImagePiece DecodeWhole(const std::string& jpeg, int reduction) {
  JpegDecoder decoder;
  const ImageSize size = decoder.ReadHeader(AsBytes(jpeg));
  const PixelBox box{0, 0, (size.width + reduction - 1) / reduction,
                     (size.height + reduction - 1) / reduction};
  ImagePiece piece;
  decoder.Decode(reduction, box, piece);
  return piece;
}

// The largest that leaves as many pixels as the output has.
int ReductionFor(const View& view, int size) {
  int reduction = 1;
  for (const int next : {2, 4, 8}) {
    if (std::min(view.width, view.height) / next >= size) reduction = next;
  }
  return reduction;
}

// Channel `channel` of the pixel of `whole` at the place (x, y), pixel (0, 0) being at (0.5, 0.5),
// by bilinear interpolation between the pixels that `view` may read.
double Interpolate(const ImagePiece& whole, const View& view, int reduction, double x, double y,
                   int channel) {
  const PixelBox& box = view.readable;
  const double first_x = std::floor(static_cast<double>(box.x) / reduction);
  const double first_y = std::floor(static_cast<double>(box.y) / reduction);
  const double last_x = std::ceil(static_cast<double>(box.x + box.width) / reduction) - 1;
  const double last_y = std::ceil(static_cast<double>(box.y + box.height) / reduction) - 1;
  const auto pixel = [&](double column, double row) {
    const auto i = static_cast<std::size_t>(std::clamp(column, first_x, last_x));
    const auto j = static_cast<std::size_t>(std::clamp(row, first_y, last_y));
    const auto width = static_cast<std::size_t>(whole.box.width);
    return static_cast<double>(
        whole.pixels[(j * width + i) * 3 + static_cast<std::size_t>(channel)]);
  };
  const double left = std::floor(x - 0.5);
  const double top = std::floor(y - 0.5);
  const double right_part = x - 0.5 - left;
  const double bottom_part = y - 0.5 - top;
  return (1 - bottom_part) *
             ((1 - right_part) * pixel(left, top) + right_part * pixel(left + 1, top)) +
         bottom_part *
             ((1 - right_part) * pixel(left, top + 1) + right_part * pixel(left + 1, top + 1));
}

// Loads views of one image and compares each pixel with the plain computation.
class Comparison {
 public:
  explicit Comparison(ImageSize size) : size_(size), jpeg_(MakeJpeg(size)) {}

  // Within 2 levels: weights of 8 bits are off by half a level along each axis at most, and the
  // result is rounded.  On the average there is no difference.
  void Check(const View& view, int size) {
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(size * size * 3));
    ASSERT_EQ(loader_.ReadHeader(AsBytes(jpeg_)), size_);
    loader_.Load(view, size, pixels);
    const int reduction = ReductionFor(view, size);
    if (!whole_.contains(reduction)) whole_[reduction] = DecodeWhole(jpeg_, reduction);
    double sum = 0;
    for (std::size_t i = 0; i < pixels.size(); ++i) {
      const int channel = static_cast<int>(i % 3);
      const int column = static_cast<int>(i) / 3 % size;
      const int row = static_cast<int>(i) / 3 / size;
      const double x = (view.x + (column + 0.5) * view.width / size) / reduction;
      const double y = (view.y + (row + 0.5) * view.height / size) / reduction;
      const double expected = Interpolate(whole_[reduction], view, reduction, x, y, channel);
      ASSERT_NEAR(pixels[i], expected, 2)
          << "column " << column << ", row " << row << ", reduced by " << reduction;
      sum += pixels[i] - expected;
    }
    EXPECT_NEAR(sum / static_cast<double>(pixels.size()), 0, 0.1);
  }

  // By which the decoder has made the image smaller.
  std::set<int> reductions() const {
    std::set<int> all;
    for (const auto& [reduction, piece] : whole_) all.insert(reduction);
    return all;
  }

 private:
  ImageSize size_;
  std::string jpeg_;
  ImageLoader loader_;
  std::map<int, ImagePiece> whole_;  // by reduction
};

TEST(ImageLoader, GivesTheRandomCropsThatWereDrawn) {
  constexpr ImageSize kSize{611, 473};
  for (const Augmentation augmentation :
       {Augmentation::kTensorFlow, Augmentation::kDali, Augmentation::kTorchvision}) {
    Comparison comparison(kSize);
    for (std::uint64_t sample = 0; sample < 30; ++sample) {
      Random random(4, RandomPurpose::kAugment, sample);
      const View view = TrainingView(kSize, {}, RulesOf(augmentation), random);
      SCOPED_TRACE(::testing::Message() << "sample " << sample);
      ASSERT_NO_FATAL_FAILURE(comparison.Check(view, 48));
    }
    EXPECT_EQ(comparison.reductions(), (std::set<int>{2, 4, 8}));
  }
}

TEST(ImageLoader, EnlargesASmallCrop) {
  Comparison comparison({90, 70});
  ASSERT_NO_FATAL_FAILURE(comparison.Check({11, 9, 40, 31, {11, 9, 40, 31}, false}, 64));
  EXPECT_EQ(comparison.reductions(), std::set<int>{1});
}

TEST(ImageLoader, GivesTheCentreForAnEvaluation) {
  for (const ImageSize size : {ImageSize{500, 375}, ImageSize{97, 230}, ImageSize{64, 64}}) {
    Comparison comparison(size);
    ASSERT_NO_FATAL_FAILURE(comparison.Check(CentreView(size, 56), 56));
  }
}

}  // namespace
}  // namespace trainer
