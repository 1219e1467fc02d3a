// SPDX-License-Identifier: Apache-2.0
//
// ddlbench loader: how many images/s the input of a training gives by itself: records read, JPEG
// images decoded, cropped, resized and laid into batches.

#pragma once

#include <cstdint>
#include <vector>

#include "bench/microbenchmarks/options.h"
#include "bench/microbenchmarks/ranks.h"
#include "trainer/data/tfrecord_loader.h"

namespace bench {

// Throws trainer::Error(EX_USAGE) naming the option that is wrong.
void CheckLoaderOptions(const LoaderOptions& options);

// As ddltraind makes its source of training, without a cap on what is skipped.
trainer::TfRecordLoaderOptions RecordOptions(const LoaderOptions& options, int threads, int rank,
                                             int ranks);

// With so many threads in a rank, in each round.
struct LoaderSpeeds {
  int threads = 1;
  std::vector<double> images_per_second;  // of all ranks together
  std::vector<double> waited_seconds;     // for batches, mean over the ranks
};

// Rounds in which each number of threads has a turn, so that what else the machine does is spread
// over all.  Collective; the same result on every rank.  Throws trainer::Error.
std::vector<LoaderSpeeds> MeasureLoader(const LoaderOptions& options, Ranks& ranks);

}  // namespace bench
