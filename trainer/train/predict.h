// SPDX-License-Identifier: Apache-2.0
//
// What a trained network takes one image for.

#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "trainer/backend/backend.h"
#include "trainer/model/network.h"
#include "trainer/train/device_batch.h"

namespace trainer {

inline constexpr int kPredictedClasses = 5;

struct Prediction {
  int label = 0;           // class, [0, classes)
  double probability = 0;  // softmax
};

// The `count` most probable classes (or all, if there are fewer), the most probable first; of equal
// ones the lower first.
std::vector<Prediction> TopClasses(std::span<const float> logits, int count);

// The five most probable classes of a JPEG file, cropped and resized as in evaluation.
// Throws Error(EX_DATAERR) that names the file when it cannot be read or is no JPEG.
// REQUIRES: the network's images are square.
std::vector<Prediction> PredictImage(const std::filesystem::path& path, Backend& backend,
                                     Network& network, DeviceBatch& device_batch, Stream& stream);

}  // namespace trainer
