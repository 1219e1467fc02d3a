// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/libraries/convolution_graph.h"

namespace trainer {

std::string ToString(const ConvolutionGraph& graph) {
  const char* const pass = graph.pass == ConvolutionPass::kForward        ? "forward"
                           : graph.pass == ConvolutionPass::kBackwardData ? "backward data"
                                                                          : "backward filter";
  return std::string(pass) + " of a convolution " + std::to_string(graph.images) + "x" +
         std::to_string(graph.channels) + "x" + std::to_string(graph.height) + "x" +
         std::to_string(graph.width) + " to " + std::to_string(graph.filters) +
         " channels, kernel " + std::to_string(graph.kernel) + ", stride " +
         std::to_string(graph.stride) + ", padding " + std::to_string(graph.padding) + ", " +
         std::string(NameOf(graph.dtype)) + (graph.adds ? ", added to what is there" : "") +
         (graph.sums ? ", with sums" : "") + (graph.masked ? ", before a ReLU, with sums" : "");
}

}  // namespace trainer
