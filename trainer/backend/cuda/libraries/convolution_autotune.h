// SPDX-License-Identifier: Apache-2.0
//
// Which algorithm is the fastest for a pass of a convolution on the current device.  For
// construction only, as FastestOf, and in memory of its own.

#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "trainer/backend/cuda/libraries/convolution_algorithm.h"

namespace trainer {

// Throws Error (EX_UNAVAILABLE) if none of them runs.
std::size_t Fastest(cudnnHandle_t handle, const ConvolutionGraph& graph,
                    const std::vector<ConvolutionAlgorithm>& candidates);

// For graphs that do more than a convolution: the fastest of the candidates.  None if the best
// plain convolutions and passes for the rest are faster.

// `without` is that of the graph without sums.
std::optional<std::size_t> AutotuneWithBnStats(cudnnHandle_t handle, const ConvolutionGraph& graph,
                                               const std::vector<ConvolutionAlgorithm>& candidates,
                                               const ConvolutionAlgorithm& without);

// The graph is that of a gated backward data, `unmasked` that of the plain one.
std::optional<std::size_t> AutotuneDgradDrelu(cudnnHandle_t handle, const ConvolutionGraph& graph,
                                              const std::vector<ConvolutionAlgorithm>& candidates,
                                              const ConvolutionAlgorithm& unmasked);

}  // namespace trainer
