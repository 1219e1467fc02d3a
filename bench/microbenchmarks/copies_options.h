// SPDX-License-Identifier: Apache-2.0
//
// What ddlbench copies can be told.

#pragma once

#include <cstdint>
#include <string>

namespace bench {

struct MemcpyBenchOptions {
  std::int64_t bytes = std::int64_t{64} * 1024 * 1024;  // of one copy: a batch of 427 images
  int rounds = 5;                                       // copies that are timed, each way
  std::string backend = "auto";
};

}  // namespace bench
