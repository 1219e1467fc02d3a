// SPDX-License-Identifier: Apache-2.0
//
// One training step of many ranks: computing, the sums of the gradients beside it, and waiting for
// the slowest rank.  Pure.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "scaling/links.h"

namespace scaling {

// Gradients that are summed together.
struct Bucket {
  double bytes = 0;
  double ready = 1;  // how much of backward is over when all of it is there, of 1
};

// What one rank does in a step, seconds.
struct StepWork {
  double alone = 0;                  // a step of one GPU with nobody to wait for
  double backward_share = 2.0 / 3;   // of it; the rest, but for the update, comes before
  std::vector<Bucket> buckets = {};  // in the order in which they complete
  bool overlaps = true;              // sums run while backward computes, else all of them behind it
  double cycle = 0;         // a sum starts at a multiple of this time only, as Horovod's do
  double staging_rate = 0;  // bytes/s to host memory and back, before and behind; 0: summed on GPUs
  // Of the time that a rank takes, from step to step: its standard deviation.
  double spread = 0;
  double wait_between = 0;  // more, on two nodes or more, whatever the reason
};

// Parts of a step, seconds; they add up to it.
struct StepBreakdown {
  double compute = 0;
  double exposed = 0;  // sums that nothing hides
  double slowest = 0;  // waiting for the slowest rank
  double wait = 0;     // StepWork::wait_between
  double sums = 0;     // all sums, hidden or not; no part

  double total() const { return compute + exposed + slowest + wait; }
};

// The mean of the largest of `count` independent draws of a normal distribution with mean 0 and
// standard deviation 1: 0, 0.56, 0.85, 1.03, ...
double ExpectedLargest(int count);

// Bucket after bucket: each sum begins when its bucket is complete and the one before is done.
StepBreakdown StepBreakdownOf(const StepWork& work, const Links& links, int ranks);

// The gradients of ResNet-50 as ddltraind sums them: which buckets there are, and when backward has
// completed each.  The trainer's own plan (comm/gradient_buckets.h) made these numbers, and the
// test resnet50_test holds them to it, so that ddlrun needs no trainer to predict one.

enum class AllReduceModel : std::uint8_t {
  kFp32,
  kHalf,  // --reduce_precision=16bit: 16 bits, but for batch norms and biases
};

// The second is that of PyTorch's DistributedDataParallel: the last bucket is not cut, so that up
// to 25 MB are summed when backward is over.
enum class BucketRule : std::uint8_t { kDdltraind, kPytorch };

// Where gradients come from, as forward meets it: the stem, the 16 bottlenecks, the head.
inline constexpr std::size_t kBlocks = 18;

// How long backward takes in each block, in any unit.
using BackwardTimes = std::array<double, kBlocks>;

// In proportion to the values that a block's convolutions write, since memory is what bounds them.
// They add up to 1.
inline constexpr BackwardTimes kTypicalBackward = {0.0722, 0.1806, 0.1083, 0.1083, 0.1174, 0.0542,
                                                   0.0542, 0.0542, 0.0587, 0.0271, 0.0271, 0.0271,
                                                   0.0271, 0.0271, 0.0293, 0.0136, 0.0135, 0};

std::vector<Bucket> ResNet50Buckets(AllReduceModel sums, BucketRule rule,
                                    const BackwardTimes& times = kTypicalBackward);

}  // namespace scaling
