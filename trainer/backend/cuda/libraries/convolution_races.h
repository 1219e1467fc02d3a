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
std::optional<std::size_t> RaceWithSums(cudnnHandle_t handle, const ConvolutionGraph& graph,
                                        const std::vector<ConvolutionAlgorithm>& candidates,
                                        const ConvolutionAlgorithm& without);

// The graph is that of a forward pass with sums that applies a norm.  In the race is what is done
// once for each batch: forward what goes through the norm, and backward the filter, by
// `backward_filter`, which applies the norm, or as `without` has it.  What batch norm does backward
// is left out: it reads and writes the same tensors either way.
struct WithoutNorm {
  const ConvolutionAlgorithm& forward;
  const ConvolutionAlgorithm* with_sums;  // null if a pass adds up
  const ConvolutionAlgorithm& backward_filter;
};
std::optional<std::size_t> RaceWithNorm(cudnnHandle_t handle, const ConvolutionGraph& graph,
                                        const std::vector<ConvolutionAlgorithm>& candidates,
                                        const ConvolutionAlgorithm& backward_filter,
                                        const WithoutNorm& without);

// The graph is that of a gated backward data, `ungated` that of the plain one.
std::optional<std::size_t> RaceGated(cudnnHandle_t handle, const ConvolutionGraph& graph,
                                     const std::vector<ConvolutionAlgorithm>& candidates,
                                     const ConvolutionAlgorithm& ungated);

}  // namespace trainer
