// SPDX-License-Identifier: Apache-2.0
//
// Predictions as people and programs read them.  Pure.

#pragma once

#include <span>
#include <string>
#include <vector>

#include "trainer/data/class_list.h"
#include "trainer/train/evaluation/predict.h"

namespace trainer {

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
