// SPDX-License-Identifier: Apache-2.0
//
// How fast a training will be on how many nodes, what bounds it, and what would change that.  Pure.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "scaling/links.h"
#include "scaling/resnet50.h"
#include "scaling/step.h"

namespace scaling {

inline constexpr int kMostNodes = 4096;

// What the images come from.  0: it is never waited for.
struct Input {
  double node_images = 0;      // images/s that the processors of a node make of files
  double file_system = 0;      // bytes/s of all nodes together
  double image_bytes = 110e3;  // of a file; ImageNet's mean
};

// A training of ResNet-50.
struct Training {
  double batch = 256;  // images of a GPU in a step
  StepWork work = {};  // its buckets are those of `sums`, `rule`, `backward`
  Links links = {};
  Input input = {};
  Sums sums = Sums::kFp32;
  BucketRule rule = BucketRule::kDdltraind;
  BackwardTimes backward = kTypicalBackward;
};

enum class Bound : std::uint8_t {
  kCompute,  // all else together takes no more than a tenth of a step
  kRanks,    // the wait for the slowest of them
  kInside,   // links of a node
  kBetween,  // links between nodes
  kInput,
};
// "compute", "ranks", "link inside", "link between", "input".
std::string_view NameOf(Bound bound);

struct Prediction {
  int nodes = 1;
  int ranks = 1;
  StepParts parts = {};  // without the input
  double input = 0;      // seconds in which the images of a step come
  double step = 0;       // seconds: the longer of both
  double images_per_second = 0;
  double efficiency = 1;  // of as many GPUs as fast as one alone
  Bound bound = Bound::kCompute;
};

// `ranks` from 1 on, which fill node after node.
Prediction Predict(const Training& training, int ranks);

// What would be faster by a percent or more, most first.
struct Change {
  std::string what;  // "twice the adapters"
  double images_per_second = 0;
};
std::vector<Change> ChangesThatHelp(const Training& training, int ranks);

}  // namespace scaling
