// SPDX-License-Identifier: Apache-2.0
//
// The kernel of expansion_kernels.h as a convolution of this back end has it.

#pragma once

#include <cstddef>
#include <optional>

#include "trainer/backend/cuda/expansion/expansion_kernels.h"
#include "trainer/backend/ops.h"

namespace trainer {

// Of a convolution on the current GPU: none if the kernel does not compute it, or it is not between
// batch norms.
std::optional<ExpansionShape> ExpansionOf(const ConvolutionSpec& spec);

std::size_t ExpansionWorkspaceBytes(const ExpansionShape& shape);

// The arguments of Convolution::BackwardWithBnApply.
ExpansionBackward ExpansionCallOf(const GradientBeforeBnBackward& diff_dst, const Tensor& filter,
                                  const NormInput& before, const Tensor& diff_filter,
                                  const Tensor& diff_src, void* sums, void* workspace);

}  // namespace trainer
