// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/libraries/convolution_autotune.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>

#include "trainer/backend/cuda/norms/batch_norm_kernels.h"
#include "trainer/backend/cuda/norms/norm_timing.h"
#include "trainer/backend/cuda/runtime/runtime.h"
#include "trainer/backend/cuda/runtime/timing.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

std::size_t BytesOf(const ConvolutionGraph& graph, std::int64_t elements) {
  return static_cast<std::size_t>(elements) * SizeOf(graph.dtype);
}

std::size_t FloatBytes(std::int64_t count) {
  return static_cast<std::size_t>(count) * sizeof(float);
}

std::int64_t SrcElements(const ConvolutionGraph& graph) {
  return graph.images * graph.height * graph.width * graph.channels;
}

// Memory for one run of any pass of a convolution.
struct TimingMemory {
  ScratchMemory src, filter, dst, sums, relu_mask, statistics, workspace;

  TimingMemory(const ConvolutionGraph& graph, std::size_t workspace_bytes)
      : src(BytesOf(graph, SrcElements(graph))),
        filter(BytesOf(graph, graph.filters * graph.kernel * graph.kernel * graph.channels)),
        dst(BytesOf(graph, graph.images * graph.dst_height() * graph.dst_width() * graph.filters)),
        sums(FloatBytes(graph.sums     ? 2 * graph.filters
                        : graph.masked ? kGradientSumArrays * graph.channels
                                       : 0)),
        relu_mask(graph.masked ? BytesOf(graph, SrcElements(graph)) : 0),
        statistics(FloatBytes(graph.masked ? 4 * graph.channels : 0)),
        workspace(workspace_bytes) {}

  // Queues one run of `algorithm` for a graph of that size.
  void Run(const ConvolutionAlgorithm& algorithm, const ConvolutionGraph& graph,
           cudnnHandle_t handle, cudaStream_t stream) const {
    const ConvolutionOperands operands = {
        .src = src.data(),
        .filter = filter.data(),
        .dst = dst.data(),
        .sums = graph.sums || graph.masked ? sums.data() : nullptr,
        .relu_mask = graph.masked ? relu_mask.data() : nullptr,
        .statistics = static_cast<const float*>(statistics.data())};
    algorithm.Run(handle, graph.pass, operands, workspace.data(), stream);
    // The handle outlives the stream of the race.
    CheckCudnn(cudnnSetStream(handle, nullptr), "cuDNN: setting the stream");
  }
};

NormShape MakeNormShape(const ConvolutionGraph& graph, std::int64_t pixels, std::int64_t channels) {
  NormShape shape;
  shape.pixels = graph.images * pixels;
  shape.channels = shape.padded = static_cast<int>(channels);
  shape.dtype = graph.dtype;
  shape.sms = SmCount();
  return shape;
}

// What `graph` reads, and its result, as the batch norms before and behind it see them.
NormShape NormShapeBefore(const ConvolutionGraph& graph) {
  return MakeNormShape(graph, graph.height * graph.width, graph.channels);
}
NormShape NextNormShape(const ConvolutionGraph& graph) {
  return MakeNormShape(graph, graph.dst_height() * graph.dst_width(), graph.filters);
}

std::size_t WorkspaceBytes(const std::vector<ConvolutionAlgorithm>& candidates) {
  std::size_t bytes = 0;
  for (const ConvolutionAlgorithm& candidate : candidates) {
    bytes = std::max(bytes, candidate.workspace_bytes());
  }
  return bytes;
}

std::optional<std::size_t> OneOf(const std::vector<ConvolutionAlgorithm>& candidates,
                                 std::size_t winner) {
  return winner < candidates.size() ? std::optional(winner) : std::nullopt;
}

}  // namespace

std::size_t Fastest(cudnnHandle_t handle, const ConvolutionGraph& graph,
                    const std::vector<ConvolutionAlgorithm>& candidates) {
  const TimingMemory memory(graph, WorkspaceBytes(candidates));
  try {
    return FastestOf(candidates.size(), [&](std::size_t i, cudaStream_t stream) {
      memory.Run(candidates[i], graph, handle, stream);
    });
  } catch (const Error& error) {
    if (error.exit_code() == EX_OSERR) throw;
    throw Error(EX_UNAVAILABLE,
                "no engine of cuDNN runs the " + ToString(graph) + ": " + error.what());
  }
}

std::optional<std::size_t> AutotuneWithBnStats(cudnnHandle_t handle, const ConvolutionGraph& graph,
                                               const std::vector<ConvolutionAlgorithm>& candidates,
                                               const ConvolutionAlgorithm& without) {
  ConvolutionGraph alone = graph;
  alone.sums = false;
  const NormShape shape = NextNormShape(graph);
  const TimingMemory memory(graph, std::max(WorkspaceBytes(candidates), without.workspace_bytes()));
  const ScratchMemory partial(FloatBytes(NormScratchFloats(shape)));
  return OneOf(candidates,
               FastestOf(candidates.size() + 1, [&](std::size_t i, cudaStream_t stream) {
                 if (i < candidates.size()) return memory.Run(candidates[i], graph, handle, stream);
                 memory.Run(without, alone, handle, stream);
                 RunNormSums(shape, memory.dst.data(), static_cast<float*>(partial.data()), stream);
               }));
}

std::optional<std::size_t> AutotuneDgradDrelu(cudnnHandle_t handle, const ConvolutionGraph& graph,
                                              const std::vector<ConvolutionAlgorithm>& candidates,
                                              const ConvolutionAlgorithm& unmasked) {
  ConvolutionGraph alone = graph;
  alone.masked = false;
  const TimingMemory memory(graph,
                            std::max(WorkspaceBytes(candidates), unmasked.workspace_bytes()));
  const NormTimingMemory norm({.shape = NormShapeBefore(graph), .has_mask = true});
  constexpr NormLaunchConfig kDepths[] = {{.depth = 1}, {.depth = 2}};
  return OneOf(candidates, FastestOf(candidates.size() + std::size(kDepths),
                                     [&](std::size_t i, cudaStream_t stream) {
                                       if (i < candidates.size())
                                         return memory.Run(candidates[i], graph, handle, stream);
                                       memory.Run(unmasked, alone, handle, stream);
                                       norm.RunBackwardSums(kDepths[i - candidates.size()], stream);
                                     }));
}

}  // namespace trainer
