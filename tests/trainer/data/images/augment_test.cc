// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/images/augment.h"

#include "tests/support/test.h"
#include "trainer/core/philox.h"

namespace trainer {
namespace {

Random NumbersOf(std::uint64_t sample) { return {1, RandomPurpose::kAugment, sample}; }

constexpr Augmentation kAll[] = {Augmentation::kTensorFlow, Augmentation::kDali,
                                 Augmentation::kTorchvision};
const CropRules& kTensorFlowRules = RulesOf(Augmentation::kTensorFlow);
const CropRules& kDaliRules = RulesOf(Augmentation::kDali);
const CropRules& kTorchvisionRules = RulesOf(Augmentation::kTorchvision);

TEST(Augment, CropsKeepAreaAspectAndPlace) {
  const ImageSize image{500, 375};
  double smallest = 1;
  double largest = 0;
  for (std::uint64_t sample = 0; sample < 2000; ++sample) {
    Random random = NumbersOf(sample);
    const PixelBox crop = RandomCrop(image, {}, kTensorFlowRules, random);
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
    const PixelBox crop = RandomCrop(image, boxes, kTensorFlowRules, random);
    const int width = std::min(crop.x + crop.width, 300) - std::max(crop.x, 200);
    const int height = std::min(crop.y + crop.height, 300) - std::max(crop.y, 150);
    ASSERT_GT(width, 0);
    ASSERT_GE(width * height, 1500);
  }
}

// Which a run that goes on, and one that is compared with an earlier one, depend on.
TEST(Augment, TensorFlowsViewsAreThoseOfEarlierVersions) {
  const std::vector<BoundingBox> boxes = {{0.5F, 0.5F, 0.75F, 1.0F}};
  const std::vector<std::pair<PixelBox, bool>> views = {
      {{148, 76, 231, 210}, true}, {{270, 193, 208, 164}, false}, {{53, 46, 275, 320}, true},
      {{171, 41, 223, 270}, true}, {{181, 75, 256, 291}, true},   {{23, 16, 274, 344}, true}};
  for (std::uint64_t sample = 0; sample < views.size(); ++sample) {
    Random random = NumbersOf(sample);
    const View view = TrainingView({500, 375}, sample < 3 ? std::vector<BoundingBox>{} : boxes,
                                   kTensorFlowRules, random);
    EXPECT_EQ(view.readable, views[sample].first) << sample;
    EXPECT_EQ(view.mirror, views[sample].second) << sample;
  }
}

TEST(Augment, BoxesCountForTensorFlowAlone) {
  const std::vector<BoundingBox> corner = {{0, 0, 0.1F, 0.1F}};
  for (const Augmentation augmentation : kAll) {
    int moved = 0;
    for (std::uint64_t sample = 0; sample < 100; ++sample) {
      Random without = NumbersOf(sample);
      Random with = NumbersOf(sample);
      const CropRules& rules = RulesOf(augmentation);
      const PixelBox crop = RandomCrop({400, 300}, {}, rules, without);
      moved += RandomCrop({400, 300}, corner, rules, with) == crop ? 0 : 1;
    }
    EXPECT_EQ(moved > 0, augmentation == Augmentation::kTensorFlow);
  }
}

// Of 1000 x 14 pixels the widest crop that is allowed has less than the least area.
TEST(Augment, TensorFlowTakesTheWholeImageWhenNoCropFits) {
  Random random = NumbersOf(0);
  EXPECT_EQ(RandomCrop({1000, 14}, {}, kTensorFlowRules, random), (PixelBox{0, 0, 1000, 14}));
  const std::vector<BoundingBox> no_pixels = {{0.5F, 0.5F, 0.5F, 0.5F}};
  EXPECT_EQ(RandomCrop({100, 100}, no_pixels, kTensorFlowRules, random),
            (PixelBox{0, 0, 100, 100}));
}

TEST(Augment, DaliTakesTheLargestCropAnywhereWhenNoneFits) {
  std::set<int> places;
  for (std::uint64_t sample = 0; sample < 200; ++sample) {
    Random random = NumbersOf(sample);
    const PixelBox wide = RandomCrop({1000, 14}, {}, kDaliRules, random);
    EXPECT_EQ(wide, (PixelBox{wide.x, 0, 18, 14}));  // 14 * 1.33 = 18.62
    places.insert(wide.x);
    const PixelBox tall = RandomCrop({14, 1000}, {}, kDaliRules, random);
    EXPECT_EQ(tall, (PixelBox{0, tall.y, 14, 18}));  // 14 / 0.75 = 18.67
    EXPECT_LE(tall.y, 1000 - 18);
  }
  EXPECT_GE(*places.begin(), 0);
  EXPECT_LT(*places.begin(), 100);
  EXPECT_GT(*places.rbegin(), 1000 - 18 - 100);
  EXPECT_LE(*places.rbegin(), 1000 - 18);
}

TEST(Augment, TorchvisionTakesTheLargestCropInTheCentreWhenNoneFits) {
  Random random = NumbersOf(0);
  EXPECT_EQ(RandomCrop({1000, 14}, {}, kTorchvisionRules, random), (PixelBox{490, 0, 19, 14}));
  EXPECT_EQ(RandomCrop({14, 1000}, {}, kTorchvisionRules, random), (PixelBox{0, 490, 14, 19}));
}

// By the numbers that they draw, which differ for each.
TEST(Augment, TriesAsOftenAsTheDefinitionSays) {
  const auto expect_draws = [](const CropRules& rules, int draws) {
    Random random = NumbersOf(0);
    RandomCrop({1000, 14}, {}, rules, random);
    Random counting = NumbersOf(0);
    for (int i = 0; i < draws; ++i) counting.Next();
    EXPECT_EQ(random.Next(), counting.Next()) << draws;
  };
  expect_draws(kTensorFlowRules, 100);    // the aspect ratio: one height is left
  expect_draws(kDaliRules, 2 * 100 + 1);  // aspect ratio and area, and the place of what is taken
  expect_draws(kTorchvisionRules, 2 * 10);
}

// Small crops of 5 x 5 pixels are 1 x 1, or 1 x 2 by rounding.
TEST(Augment, DaliTakesNoCropWhoseAspectRoundingHasMovedOut) {
  for (const Augmentation augmentation : {Augmentation::kDali, Augmentation::kTorchvision}) {
    int outside = 0;
    for (std::uint64_t sample = 0; sample < 1000; ++sample) {
      Random random = NumbersOf(sample);
      const PixelBox crop = RandomCrop({5, 5}, {}, RulesOf(augmentation), random);
      const double aspect = static_cast<double>(crop.width) / crop.height;
      outside += aspect < 0.75 || aspect > 4.0 / 3 ? 1 : 0;
    }
    EXPECT_EQ(outside > 0, augmentation == Augmentation::kTorchvision);
  }
}

TEST(Augment, SmallestImageHasACrop) {
  for (const Augmentation augmentation : kAll) {
    Random random = NumbersOf(0);
    EXPECT_EQ(RandomCrop({1, 1}, {}, RulesOf(augmentation), random), (PixelBox{0, 0, 1, 1}));
  }
}

TEST(Augment, CropsOfSmallImagesAreWithinThem) {
  for (const Augmentation augmentation : kAll) {
    for (std::uint64_t sample = 0; sample < 2000; ++sample) {
      Random random = NumbersOf(sample);
      const ImageSize image{1 + static_cast<int>(sample % 41), 1 + static_cast<int>(sample % 13)};
      const PixelBox crop = RandomCrop(image, {}, RulesOf(augmentation), random);
      ASSERT_GE(std::min(crop.x, crop.y), 0);
      ASSERT_GE(std::min(crop.width, crop.height), 1);
      ASSERT_LE(crop.x + crop.width, image.width);
      ASSERT_LE(crop.y + crop.height, image.height);
    }
  }
}

TEST(Augment, SameSampleGetsTheSameView) {
  for (const Augmentation augmentation : kAll) {
    Random first = NumbersOf(12);
    Random second = NumbersOf(12);
    const View a = TrainingView({200, 100}, {}, RulesOf(augmentation), first);
    const View b = TrainingView({200, 100}, {}, RulesOf(augmentation), second);
    EXPECT_EQ(a.readable, b.readable);
    EXPECT_EQ(a.mirror, b.mirror);
  }
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

constexpr int kPixels = 50;
constexpr std::size_t kElements = std::size_t{3} * kPixels;
constexpr std::uint8_t kUntouched = 0xA5;

// What resize.h says, in whole numbers that cannot overflow.
std::vector<std::uint8_t> Expected(const std::vector<std::int64_t>& values,
                                   const std::vector<Tap>& columns) {
  std::vector<std::uint8_t> out;
  for (const Tap& tap : columns) {
    for (std::size_t channel = 0; channel < 3; ++channel) {
      const std::int64_t left = values[3 * static_cast<std::size_t>(tap.first) + channel];
      const std::int64_t right = values[3 * static_cast<std::size_t>(tap.second) + channel];
      const std::int64_t sum = left * (256 - tap.weight) + right * tap.weight;
      out.push_back(static_cast<std::uint8_t>((sum + 32768) / 65536));
    }
  }
  return out;
}

// Rows of any values, of the smallest and of the largest, and any number of columns.
TEST(BlendColumns, IsTheRoundedSumWithAndWithoutVectorUnits) {
  Random random(1, RandomPurpose::kGenerate, 0);
  for (int round = 0; round < 600; ++round) {
    std::vector<std::int64_t> values;
    std::vector<std::int16_t> row;
    for (std::size_t i = 0; i <= kElements; ++i) {
      const std::int64_t any = random.Below(65281);
      values.push_back(round % 3 == 0 ? any : random.Below(2) * 65280);
      row.push_back(static_cast<std::int16_t>(values.back() - 32768));
    }
    std::vector<Tap> columns;
    for (int i = 0; i < round % 20; ++i) {
      columns.push_back({static_cast<int>(random.Below(kPixels)),
                         static_cast<int>(random.Below(kPixels)),
                         round % 2 == 0 ? static_cast<int>(random.Below(257)) : i % 2 * 256});
    }
    const std::vector<std::uint8_t> expected = Expected(values, columns);
    for (const auto blend : {BlendColumns, BlendColumnsOneByOne}) {
      std::vector<std::uint8_t> out(expected.size() + 16, kUntouched);
      blend(row.data(), columns, out.data());
      ASSERT_TRUE(std::equal(expected.begin(), expected.end(), out.begin())) << round;
      const auto behind = std::count(out.end() - 16, out.end(), kUntouched);
      ASSERT_EQ(behind, 16) << round;
    }
  }
}

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
  EXPECT_THAT(Resized(piece, view, 4), Each(AllOf(::testing::Ge(10), ::testing::Le(30))));
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
