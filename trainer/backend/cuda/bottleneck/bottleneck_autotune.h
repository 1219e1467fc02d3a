// SPDX-License-Identifier: Apache-2.0
//
// Which variant of a fused kernel is the faster one in a bottleneck, or in two of them, by running
// whole blocks both ways.

#pragma once

#include "trainer/backend/cuda/bottleneck/bottleneck.h"
#include "trainer/backend/cuda/runtime/timing.h"

namespace trainer {

// As the autotuner knows it; else both are timed.  A kernel with which a step gives other results
// than with the passes, by more than rounding, does not take part.  For construction only, as
// FastestOf, in memory of its own; blocks are to be reserved and bound after that.  REQUIRES: there
// is the kernel.
Conv3Variant FasterConv3Variant(Autotuner& autotuner, CudaBottleneck& block);
// Whose backward pass is as it is to be.
Conv3Variant FasterConv3ForwardVariant(Autotuner& autotuner, CudaBottleneck& block);
// kFusedDataGradient or kSeparate, of a block that has `above` on top, which goes through its end.
Conv3Variant FasterConv3DataGradient(Autotuner& autotuner, CudaBottleneck& block,
                                     CudaBottleneck& above);
// Of `above`, which is to become the variant, on top of the block of `below`.
Conv1Variant FasterConv1BackwardVariant(Autotuner& autotuner, CudaBottleneck& above,
                                        BlockEnd& below);
// Of a block above another that it goes through.
Bn1Variant FasterBn1Variant(Autotuner& autotuner, CudaBottleneck& above);
// kFusedWithFilter, or what it is.  REQUIRES: memory for both.
Bn1Variant FasterBn1VariantWithFilter(Autotuner& autotuner, CudaBottleneck& above);
Conv1Variant FasterConv1ForwardVariant(Autotuner& autotuner, CudaBottleneck& above,
                                       BlockEnd& below);

}  // namespace trainer
