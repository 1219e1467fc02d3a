// SPDX-License-Identifier: Apache-2.0
//
// How random crops are distributed, against the definitions of TensorFlow, DALI and torchvision,
// which are written down here a second time.  All numbers are drawn from fixed seeds; each test
// would fail by chance with a probability of 0.1 %.

#include <ostream>

#include "tests/support/test.h"
#include "trainer/data/images/augment.h"

namespace trainer {
namespace {

// So large that rounding to whole pixels does not count.  The whole image is an allowed crop.
constexpr ImageSize kLargeImage{7000, 6000};
constexpr int kSamples = 50000;

struct Definition {
  std::string name;
  Augmentation augmentation;
  std::vector<BoundingBox> boxes;
  double min_area;  // of the image
  double min_aspect;
  double max_aspect;
  bool logarithm_of_aspect_is_uniform;
  bool height_is_uniform;  // not the area
  double min_accepted_area;
};

// gtest prints it so.
std::ostream& operator<<(std::ostream& out, const Definition& definition) {
  return out << definition.name;
}

// So close together that each crop has one of them.
std::vector<BoundingBox> BoxesEverywhere() {
  constexpr int kPerSide = 16;
  std::vector<BoundingBox> boxes;
  for (int i = 0; i < kPerSide * kPerSide; ++i) {
    const float x = static_cast<float>(i % kPerSide) / kPerSide;
    const float y = static_cast<float>(i / kPerSide) / kPerSide;
    boxes.push_back({x, y, x + 0.001F, y + 0.001F});
  }
  return boxes;
}

std::vector<Definition> Definitions() {
  const std::vector<BoundingBox> corner = {{0, 0, 0.1F, 0.1F}};  // few crops have it
  return {
      {"tensorflow", Augmentation::kTensorFlow, BoxesEverywhere(), 0.05, 0.75, 1.33, false, true,
       0},
      // The image is the box, and a tenth of it must be seen.
      {"tensorflow_without_boxes",
       Augmentation::kTensorFlow,
       {},
       0.05,
       0.75,
       1.33,
       false,
       true,
       0.1},
      {"dali", Augmentation::kDali, corner, 0.05, 0.75, 1.33, true, false, 0},
      {"torchvision", Augmentation::kTorchvision, corner, 0.08, 3.0 / 4, 4.0 / 3, true, false, 0},
  };
}

Random NumbersFor(std::uint64_t sample) { return {20, RandomPurpose::kAugment, sample}; }

std::vector<PixelBox> Crops(const Definition& definition) {
  std::vector<PixelBox> crops;
  for (std::uint64_t sample = 0; sample < kSamples; ++sample) {
    Random random = NumbersFor(sample);
    crops.push_back(
        RandomCrop(kLargeImage, definition.boxes, RulesOf(definition.augmentation), random));
  }
  return crops;
}

double AreaOf(const PixelBox& crop) {
  return static_cast<double>(crop.width) * crop.height / kLargeImage.width / kLargeImage.height;
}
double AspectOf(const PixelBox& crop) { return static_cast<double>(crop.width) / crop.height; }

// What accepted crops are like: one for each point of a grid over the two numbers that are drawn.
struct Expected {
  std::vector<double> areas;  // both sorted
  std::vector<double> aspects;
};

Expected Expect(const Definition& definition) {
  constexpr int kPoints = 400;
  const double image_aspect = static_cast<double>(kLargeImage.width) / kLargeImage.height;
  Expected expected;
  for (int i = 0; i < kPoints; ++i) {
    const double u = (i + 0.5) / kPoints;
    const double low = definition.min_aspect;
    const double high = definition.max_aspect;
    const double aspect = definition.logarithm_of_aspect_is_uniform
                              ? std::exp((1 - u) * std::log(low) + u * std::log(high))
                              : (1 - u) * low + u * high;
    // In heights of the image, whose width then is its aspect ratio.
    const double min = std::sqrt(definition.min_area * image_aspect / aspect);
    const double max = std::min(1.0, image_aspect / aspect);
    for (int j = 0; j < kPoints; ++j) {
      const double v = (j + 0.5) / kPoints;
      const double drawn_area = (1 - v) * definition.min_area + v;
      const double height = definition.height_is_uniform
                                ? (1 - v) * min + v * max
                                : std::sqrt(drawn_area * image_aspect / aspect);
      const double width = height * aspect;
      const double area = width * height / image_aspect;
      if (height > 1 || width > image_aspect || area < definition.min_accepted_area) continue;
      expected.areas.push_back(area);
      expected.aspects.push_back(aspect);
    }
  }
  std::ranges::sort(expected.areas);
  std::ranges::sort(expected.aspects);
  return expected;
}

// How much of `sorted` is up to `value`.
double ShareUpTo(const std::vector<double>& sorted, double value) {
  const auto end = std::ranges::upper_bound(sorted, value);
  return static_cast<double>(end - sorted.begin()) / static_cast<double>(sorted.size());
}

// Kolmogorov and Smirnov: the largest distance between the distribution functions of `values` and
// of what is expected, over the one that chance exceeds with a probability of 0.1 %.
double DistanceOverBound(std::vector<double> values,
                         const std::function<double(double)>& share_up_to) {
  std::ranges::sort(values);
  const auto count = static_cast<double>(values.size());
  double distance = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double expected = share_up_to(values[i]);
    distance = std::max({distance, expected - static_cast<double>(i) / count,
                         static_cast<double>(i + 1) / count - expected});
  }
  return distance / std::sqrt(-std::log(0.001 / 2) / 2 / count);
}

class Distribution : public ::testing::TestWithParam<Definition> {};

TEST_P(Distribution, OfAreaAndAspectIsThatOfTheDefinition) {
  const Expected expected = Expect(GetParam());
  std::vector<double> areas;
  std::vector<double> aspects;
  for (const PixelBox& crop : Crops(GetParam())) {
    areas.push_back(AreaOf(crop));
    aspects.push_back(AspectOf(crop));
  }
  EXPECT_LT(DistanceOverBound(areas, [&](double x) { return ShareUpTo(expected.areas, x); }), 1);
  EXPECT_LT(DistanceOverBound(aspects, [&](double x) { return ShareUpTo(expected.aspects, x); }),
            1);
}

// Which tells 1.33 from 4/3.  More than ten crops are expected within the tolerance of each.
TEST_P(Distribution, ReachesItsLimitsAndNoFurther) {
  const Definition& definition = GetParam();
  std::vector<double> areas;
  std::vector<double> aspects;
  for (const PixelBox& crop : Crops(definition)) {
    areas.push_back(AreaOf(crop));
    aspects.push_back(AspectOf(crop));
  }
  constexpr double kTolerance = 0.001;
  const auto [min_area, max_area] = std::ranges::minmax(areas);
  EXPECT_NEAR(min_area, std::max(definition.min_area, definition.min_accepted_area), kTolerance);
  EXPECT_GT(max_area, 0.98);
  EXPECT_LE(max_area, 1);
  const auto [min_aspect, max_aspect] = std::ranges::minmax(aspects);
  EXPECT_NEAR(min_aspect, definition.min_aspect, kTolerance);
  EXPECT_NEAR(max_aspect, definition.max_aspect, kTolerance);
}

TEST_P(Distribution, OfPlacesIsUniform) {
  Definition definition = GetParam();
  definition.boxes.clear();  // they would pull TensorFlow's crops to them
  std::vector<double> rows;
  std::vector<double> columns;
  const auto add = [](std::vector<double>& places, int place, int room) {
    if (room > 1000) places.push_back((place + 0.5) / (room + 1));
  };
  for (const PixelBox& crop : Crops(definition)) {
    add(rows, crop.y, kLargeImage.height - crop.height);
    add(columns, crop.x, kLargeImage.width - crop.width);
  }
  const auto uniform = [](double x) { return x; };
  EXPECT_GT(std::min(rows.size(), columns.size()), 10000U);
  EXPECT_LT(DistanceOverBound(rows, uniform), 1);
  EXPECT_LT(DistanceOverBound(columns, uniform), 1);
}

TEST_P(Distribution, HasHalfOfTheImagesMirrored) {
  int mirrored = 0;
  for (std::uint64_t sample = 0; sample < kSamples; ++sample) {
    Random random = NumbersFor(sample);
    const View view = TrainingView({64, 64}, {}, RulesOf(GetParam().augmentation), random);
    mirrored += view.mirror ? 1 : 0;
  }
  // The binomial distribution is normal here: 3.29 deviations are exceeded in 0.1 %.
  EXPECT_NEAR(mirrored, kSamples / 2, 3.29 * std::sqrt(kSamples / 4.0));
}

INSTANTIATE_TEST_SUITE_P(Augment, Distribution, ::testing::ValuesIn(Definitions()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace trainer
