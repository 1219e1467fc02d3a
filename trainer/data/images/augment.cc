// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/images/augment.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace trainer {
namespace {

// NVIDIA's DeepLearningExamples at fed7ba99, TensorFlow/Classification/ConvNets:
// utils/image_processing.py; what TensorFlow makes of it: sample_distorted_bounding_box_op.cc.
constexpr CropRules kTensorFlow = {.min_area = 0.05,
                                   .max_area = 1.0,
                                   .size = CropRules::Size::kUniformHeight,
                                   .min_aspect = 0.75,
                                   .max_aspect = 1.33,
                                   .aspect = CropRules::Aspect::kUniform,
                                   .rounded_aspect_counts = false,
                                   .min_object_covered = 0.1,
                                   .attempts = 100,
                                   .none_fits = CropRules::NoneFits::kWholeImage};

// The same place, utils/dali_utils.py (DALI's own example of a ResNet has 1.25 for 1.33); what DALI
// makes of it: dali/operators/image/crop/random_crop_generator_util.cc.
constexpr CropRules kDali = {.min_area = 0.05,
                             .max_area = 1.0,
                             .size = CropRules::Size::kUniformArea,
                             .min_aspect = 0.75,
                             .max_aspect = 1.33,
                             .aspect = CropRules::Aspect::kUniformLogarithm,
                             .rounded_aspect_counts = true,
                             .min_object_covered = 0,
                             .attempts = 100,
                             .none_fits = CropRules::NoneFits::kLargestAnywhere};

// RandomResizedCrop of torchvision/transforms/transforms.py and its get_params.
constexpr CropRules kTorchvision = {.min_area = 0.08,
                                    .max_area = 1.0,
                                    .size = CropRules::Size::kUniformArea,
                                    .min_aspect = 3.0 / 4,
                                    .max_aspect = 4.0 / 3,
                                    .aspect = CropRules::Aspect::kUniformLogarithm,
                                    .rounded_aspect_counts = false,
                                    .min_object_covered = 0,
                                    .attempts = 10,
                                    .none_fits = CropRules::NoneFits::kLargestCentred};

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

double DrawAspect(const CropRules& rules, Random& random) {
  const double part = random.Uniform();
  if (rules.aspect == CropRules::Aspect::kUniform) {
    return rules.min_aspect + (rules.max_aspect - rules.min_aspect) * part;
  }
  return rules.min_aspect * std::pow(rules.max_aspect / rules.min_aspect, part);
}

// TensorFlow, sample_distorted_bounding_box_op.cc, GenerateRandomCrop.  Without pixels: no success.
ImageSize DrawHeight(ImageSize image, double aspect, const CropRules& rules, Random& random) {
  const double pixels = static_cast<double>(image.width) * image.height;
  const double min_area = rules.min_area * pixels;
  const double max_area = rules.max_area * pixels;
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
  return {width, height};
}

// As DALI and torchvision do it.  Without pixels: no success.
ImageSize DrawArea(ImageSize image, double aspect, const CropRules& rules, Random& random) {
  const double part = rules.min_area + (rules.max_area - rules.min_area) * random.Uniform();
  const double area = part * image.width * image.height;
  ImageSize size = {Round(std::sqrt(area * aspect)), Round(std::sqrt(area / aspect))};
  if (rules.rounded_aspect_counts) {
    size = {std::max(size.width, 1), std::max(size.height, 1)};
    const double rounded = static_cast<double>(size.width) / size.height;
    if (rounded < rules.min_aspect || rounded > rules.max_aspect) return {};
  }
  const bool fits =
      size.width > 0 && size.width <= image.width && size.height > 0 && size.height <= image.height;
  return fits ? size : ImageSize{};
}

PixelBox PlaceAnywhere(ImageSize image, ImageSize size, Random& random) {
  const auto place = [&](int room) {
    return room > 0 ? static_cast<int>(random.Below(static_cast<std::uint32_t>(room + 1))) : 0;
  };
  const int y = place(image.height - size.height);
  const int x = place(image.width - size.width);
  return {x, y, size.width, size.height};
}

// `whole` makes whole pixels of the side that is cut.
ImageSize LargestSize(ImageSize image, const CropRules& rules, int (*whole)(double)) {
  const double aspect = static_cast<double>(image.width) / image.height;
  if (aspect > rules.max_aspect) return {whole(image.height * rules.max_aspect), image.height};
  if (aspect < rules.min_aspect) return {image.width, whole(image.width / rules.min_aspect)};
  return image;
}

PixelBox CropWhereNoneFits(ImageSize image, const CropRules& rules, Random& random) {
  if (rules.none_fits == CropRules::NoneFits::kLargestAnywhere) {
    const auto cut = [](double side) { return static_cast<int>(side); };
    return PlaceAnywhere(image, LargestSize(image, rules, cut), random);
  }
  if (rules.none_fits == CropRules::NoneFits::kLargestCentred) {
    const ImageSize size = LargestSize(image, rules, Round);
    return {(image.width - size.width) / 2, (image.height - size.height) / 2, size.width,
            size.height};
  }
  return {0, 0, image.width, image.height};
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

bool CoversAnObject(const PixelBox& crop, const std::vector<PixelBox>& objects,
                    double min_object_covered) {
  return std::any_of(objects.begin(), objects.end(), [&](const PixelBox& object) {
    return Area(object) > 0 && static_cast<double>(Area(Intersection(crop, object))) >=
                                   min_object_covered * static_cast<double>(Area(object));
  });
}

}  // namespace

const CropRules& RulesOf(Augmentation augmentation) {
  switch (augmentation) {
    case Augmentation::kDali:
      return kDali;
    case Augmentation::kTorchvision:
      return kTorchvision;
    case Augmentation::kTensorFlow:
      break;
  }
  return kTensorFlow;
}

PixelBox RandomCrop(ImageSize image, std::span<const BoundingBox> boxes, const CropRules& rules,
                    Random& random) {
  const bool boxes_count = rules.min_object_covered > 0;
  const std::vector<PixelBox> objects =
      boxes_count ? ObjectPixels(image, boxes) : std::vector<PixelBox>{};
  const auto draw_size = rules.size == CropRules::Size::kUniformHeight ? DrawHeight : DrawArea;
  for (int attempt = 0; attempt < rules.attempts; ++attempt) {
    const double aspect = DrawAspect(rules, random);
    const ImageSize size = draw_size(image, aspect, rules, random);
    if (size == ImageSize{}) continue;
    const PixelBox crop = PlaceAnywhere(image, size, random);
    if (!boxes_count || CoversAnObject(crop, objects, rules.min_object_covered)) return crop;
  }
  return CropWhereNoneFits(image, rules, random);
}

View TrainingView(ImageSize image, std::span<const BoundingBox> boxes, const CropRules& rules,
                  Random& random) {
  const bool mirror = random.Below(2) == 1;
  const PixelBox crop = RandomCrop(image, boxes, rules, random);
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
