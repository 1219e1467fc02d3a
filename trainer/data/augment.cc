// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/augment.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace trainer {
namespace {

constexpr double kMinArea = 0.05;  // of the image
constexpr double kMaxArea = 1.0;
constexpr double kMinAspect = 0.75;
constexpr double kMaxAspect = 1.33;
constexpr double kMinObjectCovered = 0.1;
constexpr int kAttempts = 100;

int Round(double value) { return static_cast<int>(std::lrint(value)); }

std::int64_t Area(const PixelBox& box) {
  return std::int64_t{std::max(box.width, 0)} * std::max(box.height, 0);
}

PixelBox Intersection(const PixelBox& a, const PixelBox& b) {
  const int x = std::max(a.x, b.x);
  const int y = std::max(a.y, b.y);
  return {x, y, std::min(a.x + a.width, b.x + b.width) - x,
          std::min(a.y + a.height, b.y + b.height) - y};
}

// One attempt (TensorFlow, sample_distorted_bounding_box_op.cc, GenerateRandomCrop): the height is
// uniform over those that the areas allow.  An empty box: no success.
PixelBox TryCrop(ImageSize image, double aspect, Random& random) {
  const double pixels = static_cast<double>(image.width) * image.height;
  const double min_area = kMinArea * pixels;
  const double max_area = kMaxArea * pixels;
  int max_height = Round(std::sqrt(max_area / aspect));
  if (Round(max_height * aspect) > image.width) {
    max_height = static_cast<int>((image.width + 0.5 - 1e-7) / aspect);
    if (Round(max_height * aspect) > image.width) --max_height;
  }
  max_height = std::min(max_height, image.height);
  int height = std::min(Round(std::sqrt(min_area / aspect)), max_height);
  if (height < max_height) {
    height += static_cast<int>(random.Below(static_cast<std::uint32_t>(max_height - height + 1)));
  }
  int width = Round(height * aspect);
  // Rounding may have moved the area out of its range: try the next larger or smaller box.
  if (static_cast<double>(width) * height < min_area) width = Round(++height * aspect);
  if (static_cast<double>(width) * height > max_area) width = Round(--height * aspect);
  const double area = static_cast<double>(width) * height;
  if (area < min_area || area > max_area || width > image.width || height > image.height ||
      width <= 0 || height <= 0) {
    return {};
  }
  const auto place = [&](int room) {
    return room > 0 ? static_cast<int>(random.Below(static_cast<std::uint32_t>(room + 1))) : 0;
  };
  const int y = place(image.height - height);
  const int x = place(image.width - width);
  return {x, y, width, height};
}

std::vector<PixelBox> ObjectPixels(ImageSize image, std::span<const BoundingBox> boxes) {
  if (boxes.empty()) return {{0, 0, image.width, image.height}};
  std::vector<PixelBox> objects;
  for (const BoundingBox& box : boxes) {
    const int x = static_cast<int>(box.xmin * static_cast<float>(image.width));
    const int y = static_cast<int>(box.ymin * static_cast<float>(image.height));
    objects.push_back({x, y, static_cast<int>(box.xmax * static_cast<float>(image.width)) - x,
                       static_cast<int>(box.ymax * static_cast<float>(image.height)) - y});
  }
  return objects;
}

bool CoversAnObject(const PixelBox& crop, const std::vector<PixelBox>& objects) {
  return std::any_of(objects.begin(), objects.end(), [&](const PixelBox& object) {
    return Area(object) > 0 && static_cast<double>(Area(Intersection(crop, object))) >=
                                   kMinObjectCovered * static_cast<double>(Area(object));
  });
}

}  // namespace

PixelBox RandomCrop(ImageSize image, std::span<const BoundingBox> boxes, Random& random) {
  const std::vector<PixelBox> objects = ObjectPixels(image, boxes);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const double aspect = kMinAspect + (kMaxAspect - kMinAspect) * random.Uniform();
    const PixelBox crop = TryCrop(image, aspect, random);
    if (Area(crop) > 0 && CoversAnObject(crop, objects)) return crop;
  }
  return {0, 0, image.width, image.height};
}

View TrainingView(ImageSize image, std::span<const BoundingBox> boxes, Random& random) {
  const bool mirror = random.Below(2) == 1;
  const PixelBox crop = RandomCrop(image, boxes, random);
  return {static_cast<double>(crop.x),
          static_cast<double>(crop.y),
          static_cast<double>(crop.width),
          static_cast<double>(crop.height),
          crop,
          mirror};
}

View CentreView(ImageSize image, int output) {
  const std::int64_t shorter = std::int64_t{output} * 256 / 224;
  const std::int64_t side = std::min(image.width, image.height);
  // The resized image, then the output's place in it, both in whole pixels.
  const std::int64_t whole_width = image.width * shorter / side;
  const std::int64_t whole_height = image.height * shorter / side;
  const auto resized_width = static_cast<double>(whole_width);
  const auto resized_height = static_cast<double>(whole_height);
  const double left = std::floor((resized_width - output) / 2);
  const double top = std::floor((resized_height - output) / 2);
  const double x_scale = image.width / resized_width;
  const double y_scale = image.height / resized_height;
  return {left * x_scale,
          top * y_scale,
          output * x_scale,
          output * y_scale,
          {0, 0, image.width, image.height},
          false};
}

}  // namespace trainer
