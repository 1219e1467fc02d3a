// SPDX-License-Identifier: Apache-2.0
//
// The kernel of conv3_backward.h as a convolution of this back end has it.

#pragma once

#include <cstddef>
#include <optional>

#include "trainer/backend/cuda/bottleneck/conv3_backward.h"
#include "trainer/backend/ops.h"

namespace trainer {

// Of a convolution on the current GPU: none if the kernel does not compute it, or it is not between
// batch norms.
std::optional<Conv3BackwardShape> ExpansionOf(const ConvolutionSpec& spec);

std::size_t ExpansionWorkspaceBytes(const Conv3BackwardShape& shape);

// The arguments of Convolution::BackwardWithBnApply.
Conv3Backward ExpansionCallOf(const GradientBeforeBnBackward& diff_dst, const Tensor& filter,
                              const NormInput& before, const Tensor& diff_filter,
                              const Tensor& diff_src, void* sums, void* workspace);

}  // namespace trainer
