// SPDX-License-Identifier: Apache-2.0
//
// Which variant of conv3's backward pass is the faster one in a bottleneck, by running the whole
// block both ways.

#pragma once

#include "trainer/backend/cuda/bottleneck/bottleneck.h"
#include "trainer/backend/cuda/runtime/timing.h"

namespace trainer {

// As the autotuner knows it; else both are timed.  A kernel whose results differ from those of the
// passes by more than rounding does not take part.  For construction only, as FastestOf, in memory
// of its own; `block` is to be reserved and bound after that.  REQUIRES: `block` has the kernel.
Conv3Variant FasterConv3Variant(Autotuner& autotuner, CudaBottleneck& block);

}  // namespace trainer
