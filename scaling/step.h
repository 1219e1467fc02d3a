// SPDX-License-Identifier: Apache-2.0
//
// One training step of many ranks: computing, the sums of the gradients beside it, and waiting for
// the slowest rank.  Pure.

#pragma once

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

}  // namespace scaling
