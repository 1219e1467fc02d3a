// SPDX-License-Identifier: Apache-2.0
//
// The end of a bottleneck, bn3, the addition and the ReLU, as the block above goes on backward
// through it (Conv1Variant::kFused).

#pragma once

#include <cstdint>

#include "trainer/backend/cuda/bottleneck/conv1_backward.h"

namespace trainer {

class CudaBottleneck;

struct BlockEnd {
  CudaBottleneck* block = nullptr;  // whose end it is
  bool is_dual = false;
  // NormPartialSums::blocks that the block above leaves, together with the gradient of dst behind
  // the ReLU; 0: it leaves the gradient of dst as it is.
  int partial_blocks = 0;

  // In the memory of `block`, once that is bound: where the ReLU passes, what its batch norms have
  // read and saved, and room for the sums.
  const std::uint8_t* mask = nullptr;
  Conv1Backward::Norm first, second;
};

}  // namespace trainer
