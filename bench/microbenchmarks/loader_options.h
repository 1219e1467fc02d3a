// SPDX-License-Identifier: Apache-2.0
//
// What ddlbench loader can be told.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

struct LoaderOptions {
  std::string data_dir;
  std::string data_idx_dir;       // "": record boundaries are found by scanning
  std::int64_t batch_size = 256;  // images of a rank in a step
  int image_size = 224;           // pixels
  std::vector<int> threads;       // of a rank, one measurement for each; none: one per core
  int prefetch = 2;               // batches
  int steps = 20;                 // that are timed
  int warmup_steps = 5;
  int rounds = 3;
  std::int64_t take_rate = 0;        // images/s that a rank takes at most; 0: as fast as they come
  std::string bad_records = "stop";  // or "skip"
  std::string augmentation = "tensorflow";  // or another of trainer::kAugmentations
};

}  // namespace bench
