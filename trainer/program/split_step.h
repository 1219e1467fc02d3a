// SPDX-License-Identifier: Apache-2.0
//
// What --global_batch_size makes of --batch_size and --accumulate for the ranks of a run.  Pure.

#pragma once

#include <string>

#include "trainer/options/options.h"

namespace trainer {

// Sets batch_size, accumulate and short_ranks so that a step of all `ranks` has global_batch_size
// images (SplitImages; batch_size is the most that fits, or 0), in modes that train; in others
// batch_size alone, where it is 0.  Does nothing where global_batch_size is 0.  Throws
// Error(EX_CONFIG) where the images cannot be split, with the nearest numbers that can.
void SplitStep(Options& options, int ranks);

// A line for people on how a step is split; "" where that was not asked for.  REQUIRES: SplitStep
// was called.
std::string DescribeStep(const Options& options, int ranks);

}  // namespace trainer
