// SPDX-License-Identifier: Apache-2.0
//
// What a trained network takes images for.

#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "trainer/backend/backend.h"
#include "trainer/model/network.h"
#include "trainer/train/step/device_batch.h"

namespace trainer {

inline constexpr int kPredictedClasses = 5;

struct Prediction {
  int label = 0;           // class, [0, classes)
  double probability = 0;  // softmax
};

struct ImagePrediction {
  std::filesystem::path file;
  std::vector<Prediction> classes;  // the most probable first
  std::string problem;              // why the file could not be read; "": it was
};

// The `count` most probable classes (or all, if there are fewer), the most probable first; of equal
// ones the lower first.
std::vector<Prediction> TopClasses(std::span<const float> logits, int count);

// The five most probable classes of the image in `file`, which is read as records and conversions
// are (data/images/image_decoder.h), cropped and resized as in evaluation; or what is wrong with
// the file. Throws Error(EX_SOFTWARE) where the network gives NaN. REQUIRES: the network's
// images are square.
ImagePrediction PredictImage(const std::filesystem::path& file, Backend& backend, Network& network,
                             DeviceBatch& device_batch, Stream& stream);

}  // namespace trainer
