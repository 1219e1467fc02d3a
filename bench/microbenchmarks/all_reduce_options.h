// SPDX-License-Identifier: Apache-2.0
//
// What ddlbench allreduce can be told.  The sizes and counts are those of nccl-tests'
// all_reduce_perf where that has them.

#pragma once

#include <cstdint>
#include <string>

namespace bench {

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

}  // namespace bench
