// SPDX-License-Identifier: Apache-2.0
//
// What a training will be on more nodes: the table of ddlrun --advise.  Pure.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scaling/machine.h"

namespace launcher {

// What a command line of ddltraind asks for, as far as its speed on many nodes goes.  The trainer's
// own parser is not part of ddlrun; what that would refuse is passed over here.  Pure.

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

// The job at hand; without GPUs it says nothing of the machine.
struct JobShape {
  int nodes = 0;
  int ranks = 0;
  int gpus_per_node = 0;  // most of any node; 0: none
};

struct AdviceBasis {
  TrainingRequest requested;
  JobShape job;
  scaling::Machine machine;  // of the site file
  std::string site;          // path of that, for people
  double images_per_s = 0;   // of one GPU, by --advise=X; 0: not given
};

// A table for 1, 2, 4, 8 and 16 nodes, and for the job at hand where it is none of these: ranks,
// global batch, learning rate, images/s, efficiency, time, GPU-hours and energy; below it what is
// measured, published or assumed.
// Throws LaunchError(EX_USAGE) where ddltraind trains nothing or another network than ResNet-50, or
// the speed of the GPU is not known.
std::string AdviceText(const AdviceBasis& basis);

}  // namespace launcher
