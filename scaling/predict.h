// SPDX-License-Identifier: Apache-2.0
//
// How fast a training will be on how many nodes, what bounds it, and what would change that.  Pure.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "scaling/links.h"
#include "scaling/step.h"

namespace scaling {

// What a few measured speeds say of a step: how far ranks are apart, and whether sums are hidden.
// Pure.

// Images/s, all GPUs together; 0: not measured.
struct Speeds {
  double one_gpu = 0;
  double one_node = 0;  // all its GPUs
  double two_nodes = 0;
};

enum class Overlap : std::uint8_t { kAuto, kYes, kNo };

// Ranks whose steps are further apart than this, of a step's time, wait for their hosts (the start
// of kernels, hooks, the input) rather than for one another, and then sums are started late, too,
// and hide behind nothing.  Found with the published speeds in tests/fixtures/scaling: of the
// eleven series there those up to 5.2 % hide their sums, those from 6.3 % on lose what they take.
inline constexpr double kMaxSpread = 0.058;

struct Calibration {
  StepWork work = {};
  bool waits = false;  // kAuto has found that sums are not hidden
  std::string reason =
      {};  // for people: what the speeds say that links do not explain; "" for nothing
};

// Of `work` the buckets and what is measured nowhere are taken.  The speed of one GPU gives
// `alone`; what one node takes longer than that and than its sums gives `spread`, the one number
// that is fitted; what two nodes take longer than all this gives `wait_between`. REQUIRES:
// speeds.one_gpu > 0, batch > 0.
Calibration Calibrate(const StepWork& work, const Links& links, double batch, const Speeds& speeds,
                      Overlap overlap);

inline constexpr int kMaxNodes = 4096;

// What the images come from.  0: it is never waited for.
struct Input {
  double node_images = 0;      // images/s that the processors of a node make of files
  double file_system = 0;      // bytes/s of all nodes together
  double image_bytes = 110e3;  // of a file; ImageNet's mean
};

// Nodes of another kind in the same job, all of their GPUs.
struct OtherNodes {
  int nodes = 0;
  double alone = 0;  // a step of one of their GPUs by itself, seconds
  Links links = {};

  int ranks() const { return nodes * links.gpus_per_node; }
};

// A training of ResNet-50.
struct Training {
  double batch = 256;  // images of a GPU in a step
  StepWork work = {};  // its buckets are those of `sums`, `rule`, `backward`
  Links links = {};
  Input input = {};
  AllReduceModel sums = AllReduceModel::kFp32;
  BucketRule rule = BucketRule::kDdltraind;
  BackwardTimes backward = kTypicalBackward;
  OtherNodes others = {};  // beside the ranks that are predicted for
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
  int ranks = 1;             // those of Training::others among them
  StepBreakdown parts = {};  // without the input
  double input = 0;          // seconds in which the images of a step come
  double step = 0;           // seconds: the longer of both
  double images_per_second = 0;
  double efficiency = 1;  // of all GPUs, each as fast as it is alone
  double kinds_wait = 0;  // seconds of a step in which GPUs of the quicker kind wait for the other
  Bound bound = Bound::kCompute;
};

// `ranks` from 1 on, which fill node after node, beside Training::others.
Prediction Predict(const Training& training, int ranks);

// What would be faster by a percent or more, most first.
struct Change {
  std::string what;  // "twice the adapters"
  double images_per_second = 0;
};
std::vector<Change> ChangesThatHelp(const Training& training, int ranks);

}  // namespace scaling
