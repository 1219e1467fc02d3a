// SPDX-License-Identifier: Apache-2.0
//
// What a training will be on more nodes: the table of ddlrun --advise.  Pure.

#pragma once

#include <string>

#include "launcher/advice/training_request.h"
#include "scaling/machine.h"

namespace launcher {

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
