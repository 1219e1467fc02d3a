// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/images/augment.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "trainer/core/error.h"

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

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace trainer {
namespace {

constexpr std::size_t kChannels = 3;
constexpr int kShift = 16;                       // bits after the point of a sum
constexpr int kSumBias = kRowBias * kOneWeight;  // of a sum: its weights add up to one
constexpr int kOffset = kSumBias + kOneWeight * kOneWeight / 2;  // and half, to round

const std::int16_t* PixelOf(const std::int16_t* row, int number) {
  return row + static_cast<std::size_t>(number) * kChannels;
}

#ifdef __SSE2__

__m128i LoadPixel(const std::int16_t* row, int number) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(PixelOf(row, number)));
}

// Four channels, of which the last is none, in 32 bits each.
__m128i BlendPixel(const std::int16_t* row, const Tap& tap) {
  const __m128i weights = _mm_set1_epi32((kOneWeight - tap.weight) | tap.weight << 16);
  const __m128i pairs = _mm_unpacklo_epi16(LoadPixel(row, tap.first), LoadPixel(row, tap.second));
  const __m128i sum = _mm_madd_epi16(pairs, weights);
  return _mm_srli_epi32(_mm_add_epi32(sum, _mm_set1_epi32(kOffset)), kShift);
}

void StoreFour(std::uint8_t* out, __m128i bytes) {
  const int four = _mm_cvtsi128_si32(bytes);
  std::memcpy(out, &four, sizeof four);
}

#endif

}  // namespace

void BlendColumnsOneByOne(const std::int16_t* row, std::span<const Tap> columns,
                          std::uint8_t* out) {
  for (const Tap& tap : columns) {
    const std::int16_t* left = PixelOf(row, tap.first);
    const std::int16_t* right = PixelOf(row, tap.second);
    for (std::size_t channel = 0; channel < kChannels; ++channel) {
      const int sum = left[channel] * (kOneWeight - tap.weight) + right[channel] * tap.weight;
      *out++ = static_cast<std::uint8_t>((sum + kOffset) >> kShift);
    }
  }
}

void BlendColumns(const std::int16_t* row, std::span<const Tap> columns, std::uint8_t* out) {
#ifdef __SSE2__
  // Each pixel is stored with one byte more, which the next one overwrites: the last is left over.
  constexpr std::size_t kGroup = 4;
  while (columns.size() > kGroup) {
    const __m128i a = BlendPixel(row, columns[0]);
    const __m128i b = BlendPixel(row, columns[1]);
    const __m128i c = BlendPixel(row, columns[2]);
    const __m128i d = BlendPixel(row, columns[3]);
    const __m128i bytes = _mm_packus_epi16(_mm_packs_epi32(a, b), _mm_packs_epi32(c, d));
    StoreFour(out, bytes);
    StoreFour(out + kChannels, _mm_srli_si128(bytes, 4));
    StoreFour(out + 2 * kChannels, _mm_srli_si128(bytes, 8));
    StoreFour(out + 3 * kChannels, _mm_srli_si128(bytes, 12));
    out += kGroup * kChannels;
    columns = columns.subspan(kGroup);
  }
#endif
  BlendColumnsOneByOne(row, columns, out);
}

namespace {

// For each of `size` output places along one axis, indices into the piece, which begins at `origin`
// and has `extent` pixels; only those in [low, high] may be read.
std::vector<Tap> MakeTaps(double begin, double length, int size, int low, int high, int origin,
                          int extent) {
  std::vector<Tap> taps(static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) {
    const double centre = begin + (i + 0.5) * length / size - 0.5;
    const double floor = std::floor(centre);
    const int left = static_cast<int>(floor);
    Tap& tap = taps[static_cast<std::size_t>(i)];
    tap.first = std::clamp(left, low, high) - origin;
    tap.second = std::clamp(left + 1, low, high) - origin;
    tap.weight = static_cast<int>(std::lrint((centre - floor) * kOneWeight));
    DDL_CHECK(tap.first >= 0 && tap.second < extent);
  }
  return taps;
}

// row[i] = the rows `top` and `bottom` blended, as BlendColumns wants it.
void BlendRows(const std::uint8_t* top, const std::uint8_t* bottom, int weight, std::size_t length,
               std::int16_t* row) {
  for (std::size_t i = 0; i < length; ++i) {
    row[i] =
        static_cast<std::int16_t>(top[i] * (kOneWeight - weight) + bottom[i] * weight - kRowBias);
  }
}

}  // namespace

void Resize(const ImagePiece& piece, const View& view, int size, std::span<std::uint8_t> out) {
  const auto stride = static_cast<std::size_t>(piece.box.width) * 3;
  DDL_CHECK(out.size() == static_cast<std::size_t>(size) * static_cast<std::size_t>(size) * 3);
  const PixelBox& readable = view.readable;
  const auto columns = MakeTaps(view.x, view.width, size, readable.x,
                                readable.x + readable.width - 1, piece.box.x, piece.box.width);
  const auto rows = MakeTaps(view.y, view.height, size, readable.y,
                             readable.y + readable.height - 1, piece.box.y, piece.box.height);
  std::vector<std::int16_t> blended(stride + 1);
  std::uint8_t* destination = out.data();
  for (const Tap& row : rows) {
    const std::uint8_t* pixels = piece.pixels.data();
    BlendRows(pixels + static_cast<std::size_t>(row.first) * stride,
              pixels + static_cast<std::size_t>(row.second) * stride, row.weight, stride,
              blended.data());
    BlendColumns(blended.data(), columns, destination);
    destination += columns.size() * 3;
  }
}

}  // namespace trainer
