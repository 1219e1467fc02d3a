// SPDX-License-Identifier: Apache-2.0
//
// What the kernels of batch norm need to know of a tensor and of the GPU that they run on.

#pragma once

#include "trainer/backend/cuda/batch_norm_kernels.h"
#include "trainer/core/tensor.h"

namespace trainer {

// Of `images` on the current GPU.
NormShape NormShapeOf(const TensorDesc& images);

}  // namespace trainer
