// SPDX-License-Identifier: Apache-2.0
//
// The images that all ranks take in one step.  Nothing else multiplies them out.  Pure.

#pragma once

#include <cstdint>

namespace trainer {

struct GlobalBatch {
  std::int64_t batch_size = 0;  // images of one rank
  int world_size = 1;           // ranks
  std::int64_t accumulate = 1;  // batches of a rank

  std::int64_t images() const { return batch_size * world_size * accumulate; }
};

}  // namespace trainer
