// SPDX-License-Identifier: Apache-2.0
//
// What a command line of ddltraind asks for, as far as its speed on many nodes goes.  The trainer's
// own parser is not part of ddlrun; what that would refuse is passed over here.  Pure.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace launcher {

// With ddltraind's defaults.
struct TrainingRequest {
  std::string mode = "train_and_evaluate";
  std::string arch = "resnet50";
  std::int64_t batch = 0;  // of a rank; 0: not given
  std::int64_t accumulate = 1;
  std::string precision = "fp32";
  bool half_sums = false;  // --reduce_precision=16bit
  double num_iter = 1;
  bool counts_epochs = true;  // num_iter is in epochs, else in steps
  double lr_init = 0.1;
  std::string lr_scaling = "linear";
  double warmup_epochs = 5;
  bool cosine = false;
  std::string lr_schedule;  // "": cosine, or steps
  std::string recipe = "none";
  bool has_data = false;  // --data_dir: images are read, not made up
};

// `arguments` are those behind ddltraind, by whole names: "--batch_size=256" or "--batch_size 256".
// Throws LaunchError(EX_USAGE) for a number of these that is none, or not above 0.
TrainingRequest ParseTrainingRequest(const std::vector<std::string>& arguments);

}  // namespace launcher
