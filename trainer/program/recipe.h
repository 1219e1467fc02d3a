// SPDX-License-Identifier: Apache-2.0
//
// --recipe: values that others have published for so many images in a step, as options in front of
// those that are given, which win.  Pure.
//
//   bede    what Bede's page on IBM WMLCE runs on 1 to 32 GPUs of 256 images
//           (N8-CIR-Bede/documentation, software/applications/wmlce.rst): NVIDIA's values, 50
//           epochs
//   nvidia  NVIDIA's TensorFlow ResNet-50 on 1 to 8 GPUs of 256 images, 90 epochs
//           (DeepLearningExamples, TensorFlow/Classification/ConvNets, resnet50v1.5/training)
//   mlperf  LARS by MLPerf's reference convergence points (mlcommons/logging, mlperf_logging/
//           rcp_checker/training_4.0.0/rcps_resnet.json), between its rows by interpolation over
//           the logarithm of the batch
//
// When a row's decay ends, its file does not say in one way: "decay steps" are counted from the
// first step or from the end of the warm-up.  Here a decay ends no earlier than the last of the
// row's runs has reached the target, which leaves one reading for each row; the ends rise from 37
// epochs at 1,632 images to 89 at 65,536.

#pragma once

#include <string>
#include <vector>

#include "trainer/options/options.h"

namespace trainer {

// The options of a run with its recipe in it, and a line for people for each value.
struct OptionsOfRecipe {
  Options options;
  std::vector<std::string> lines;  // none without a recipe
};

// `parsed` of `arguments`, for so many ranks.  Throws Error(EX_USAGE) where nothing is published
// for the images of a step.
OptionsOfRecipe ApplyRecipe(const ParsedOptions& parsed, const std::vector<std::string>& arguments,
                            int ranks);

}  // namespace trainer
