// SPDX-License-Identifier: Apache-2.0
//
// What the microbenchmarks are told.  Apart from them, since the command line needs no trainer.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

// What ddlbench allreduce can be told.  The sizes and counts are those of nccl-tests'
// all_reduce_perf where that has them.
struct AllReduceOptions {
  std::int64_t min_bytes = 8;
  std::int64_t max_bytes = std::int64_t{128} * 1024 * 1024;  // ResNet-50's gradients are 102 MB
  int factor = 2;                                            // from one size to the next
  int iterations = 20;                                       // that are timed, of each size
  int warmup_iterations = 5;
  std::string form = "nccl-tests";  // or "osu"
  std::string backend = "auto";
  std::string comm = "auto";  // or "nccl", "mpi": as of ddltraind
};

// What ddlbench copies can be told.
struct MemcpyBenchOptions {
  std::int64_t bytes = std::int64_t{64} * 1024 * 1024;  // of one copy: a batch of 427 images
  int rounds = 5;                                       // copies that are timed, each way
  std::string backend = "auto";
};

// What ddlbench loader can be told.
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
