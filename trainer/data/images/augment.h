// SPDX-License-Identifier: Apache-2.0
//
// Which part of an image the network gets to see.  Pure.

#pragma once

#include <cstdint>
#include <span>

#include "trainer/core/philox.h"
#include "trainer/data/images/image.h"

namespace trainer {

// A rectangle of the source image, in pixels with fractions, that is resized to the output, and the
// pixels that interpolation may read.
struct View {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
  PixelBox readable;
  bool mirror = false;  // flip left to right afterwards
};

// Whose random crops a training takes; each is a row of RulesOf.
enum class Augmentation { kTensorFlow, kDali, kTorchvision };

// How a random crop is drawn.  Sizes are rounded to whole pixels, and places are uniform over those
// in the image.
struct CropRules {
  enum class Size {
    kUniformHeight,  // over the heights whose areas are allowed and that fit into the image
    kUniformArea,    // over the areas that are allowed: the crop may turn out not to fit
  };
  enum class Aspect { kUniform, kUniformLogarithm };
  enum class NoneFits {  // what is taken after the last attempt
    kWholeImage,
    kLargestAnywhere,  // the largest crop whose aspect ratio is allowed, at a random place
    kLargestCentred,
  };

  double min_area;  // of the image
  double max_area;
  Size size;
  double min_aspect;  // width / height
  double max_aspect;
  Aspect aspect;
  bool rounded_aspect_counts;  // no attempt succeeds whose aspect ratio rounding has moved out
  double min_object_covered;   // the share of some box that must be in the crop; 0: boxes do not
                               // count
  int attempts;
  NoneFits none_fits;
};

// kTensorFlow: sample_distorted_bounding_box with the settings of NVIDIA's trainer.  kDali: DALI's
// ImageDecoderRandomCrop with those of the same trainer's --use_dali.  kTorchvision:
// RandomResizedCrop with its defaults.
const CropRules& RulesOf(Augmentation augmentation);

// A random crop by `rules`.  Where boxes count and `boxes` is empty, the whole image is the box.
PixelBox RandomCrop(ImageSize image, std::span<const BoundingBox> boxes, const CropRules& rules,
                    Random& random);

// Training: mirrored with probability 1/2 (the first number drawn), and a random crop.
View TrainingView(ImageSize image, std::span<const BoundingBox> boxes, const CropRules& rules,
                  Random& random);

// Evaluation: the square in the centre that `output` pixels show after the image's shorter side has
// been resized to output * 256 / 224.
View CentreView(ImageSize image, int output);

// The inner loop of bilinear interpolation: one output row out of a row whose pixels
// have 8 bits after the point.  Pure.

inline constexpr int kOneWeight = 256;  // the weight 1

// Two neighbours, and the weight of the second, 0 to kOneWeight.
struct Tap {
  int first;
  int second;
  int weight;
};

// `row` has the value v as v - kRowBias, which fits into 16 bits with a sign, as vector units
// multiply them: channels of pixels, 0 to 255 * kOneWeight, three for each.
inline constexpr int kRowBias = 32768;

// Fills `out`, three bytes for each of `columns`, rounded to the nearest.  REQUIRES: `row` has the
// pixels that `columns` name and one element more.
void BlendColumns(const std::int16_t* row, std::span<const Tap> columns, std::uint8_t* out);
// The same without vector units.
void BlendColumnsOneByOne(const std::int16_t* row, std::span<const Tap> columns, std::uint8_t* out);

// Fills `out`, `size` x `size` x 3, with the part of the image that `view` names.  Half-pixel
// centres (as PyTorch and TensorFlow 2; not TensorFlow 1's align_corners=False, which shifts the
// image by half a pixel), so that mirroring before or after makes no difference.  No antialiasing:
// the decoder has halved large images already.  Interpolation reads no pixel outside view.readable;
// weights have 8 bits. REQUIRES: `piece` covers the pixels of view.readable within one pixel of the
// view's rectangle.
void Resize(const ImagePiece& piece, const View& view, int size, std::span<std::uint8_t> out);

}  // namespace trainer
