// SPDX-License-Identifier: Apache-2.0
//
// --mode=predict: the most probable classes of single images, and how people and programs read
// them.

#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "trainer/backend/backend.h"
#include "trainer/data/class_list.h"
#include "trainer/model/network.h"
#include "trainer/train/step/batch_feed.h"

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

// Text and JSON.  Pure.

// One line for each class, "class 0 probability 0.93 n01440764 tench, Tinca tinca": its number from
// 0, and, where `classes` has it, its name and text.  Of several images each begins with a line
// "FILE:"; "FILE: PROBLEM" is all there is of one that could not be read.  Control characters in a
// name are written as \n and \x1b.
std::string FormatPredictions(std::span<const ImagePrediction> predictions,
                              const std::vector<ImageClass>& classes);

// JSON lines: one object for each image, in the order of `predictions`,
//   {"file": FILE, "classes": [{"class": 0, "label": 1, "name": ..., "text": ..., "probability":
//   0.93}, ...]}
// the most probable class first; "label" is what data files say, "name" and "text" are there where
// `classes` has them.  {"file": FILE, "error": PROBLEM} of one that could not be read.
std::string FormatPredictionsAsJson(std::span<const ImagePrediction> predictions,
                                    const std::vector<ImageClass>& classes);

}  // namespace trainer
