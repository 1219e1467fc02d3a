// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/libraries/convolution_gemm.h"

namespace trainer {

std::optional<MatmulSpec> GemmOf(const ConvolutionGraph& graph, const EngineRules& rules) {
  if (graph.kernel != 1 || graph.stride != 1 || graph.padding != 0) return std::nullopt;
  const std::int64_t pixels = graph.images * graph.height * graph.width;
  MatmulSpec spec{.input = graph.dtype,
                  .output = graph.dtype,
                  .adds = graph.adds,
                  .tf32 = rules.tf32,
                  .deterministic = rules.deterministic};
  switch (graph.pass) {
    case ConvolutionPass::kForward:  // pixels x channels, times filters x channels transposed
      spec.rows = pixels;
      spec.columns = graph.filters;
      spec.inner = graph.channels;
      spec.transpose_b = true;
      break;
    case ConvolutionPass::kBackwardData:  // pixels x filters, times filters x channels
      spec.rows = pixels;
      spec.columns = graph.channels;
      spec.inner = graph.filters;
      break;
    case ConvolutionPass::kBackwardFilter:  // pixels x filters transposed, times pixels x channels
      spec.rows = graph.filters;
      spec.columns = graph.channels;
      spec.inner = pixels;
      spec.transpose_a = true;
      break;
  }
  return spec;
}

GemmOperands OperandsOf(ConvolutionPass pass, void* src, void* filter, void* dst) {
  if (pass == ConvolutionPass::kForward) return {src, filter, dst};
  if (pass == ConvolutionPass::kBackwardData) return {dst, filter, src};
  return {dst, src, filter};
}

}  // namespace trainer
