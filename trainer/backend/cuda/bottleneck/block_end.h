// SPDX-License-Identifier: Apache-2.0
//
// The end of a bottleneck, bn3, the addition and the ReLU, as the block above takes part in it
// (Conv1Variant::kFused, in either direction).

#pragma once

#include <cstdint>

#include "trainer/backend/cuda/bottleneck/conv1_backward.h"
#include "trainer/backend/cuda/bottleneck/conv1x1_forward.h"

namespace trainer {

class CudaBottleneck;

struct BlockEnd {
  CudaBottleneck* block = nullptr;  // whose end it is
  bool is_dual = false;

  // Forward: `block` leaves it to the block above, which does it together with its conv1: what the
  // last call of Forward has left.
  bool is_left = false;
  NormsForward forward;

  // Backward: NormPartialSums::blocks that the block above leaves, together with the gradient of
  // dst behind the ReLU; 0: it leaves the gradient of dst as it is.
  int partial_blocks = 0;

  // In the memory of `block`, once that is bound: where the ReLU passes, what its batch norms have
  // read and saved, and room for the sums.
  const std::uint8_t* mask = nullptr;
  Conv1Backward::Norm first, second;
};

}  // namespace trainer
