// SPDX-License-Identifier: Apache-2.0
//
// The products that stand for convolutions, with matrices as cublaslt.h describes them, are the
// convolutions of the definition.

#include "tests/support/test.h"
#include "trainer/backend/cuda/libraries/cudnn_device.h"

namespace trainer {
namespace {

using Index = std::int64_t;
using Floats = std::vector<float>;

constexpr ConvolutionGraph kGraph{
    .images = 2, .channels = 3, .height = 4, .width = 5, .filters = 7, .kernel = 1};
constexpr Index kPixels = 2 * 4 * 5;

// Small whole numbers: sums are exact.
Floats Numbers(Index count, Index seed) {
  Floats values(static_cast<std::size_t>(count));
  Index i = seed;
  for (float& value : values) value = static_cast<float>(i++ * 7 % 11 - 5);
  return values;
}

struct Memory {
  Floats src = Numbers(kPixels * kGraph.channels, 1);
  Floats filter = Numbers(kGraph.filters * kGraph.channels, 2);
  Floats dst = Numbers(kPixels * kGraph.filters, 3);
  bool operator==(const Memory&) const = default;
};

// cuDNN's definition for a 1x1 kernel: dst[pixel][filter] is the sum over channels of
// src[pixel][channel] * filter[filter][channel], and its two derivatives.
Memory Convolved(const ConvolutionGraph& graph, Memory memory) {
  Floats& out = graph.pass == ConvolutionPass::kForward        ? memory.dst
                : graph.pass == ConvolutionPass::kBackwardData ? memory.src
                                                               : memory.filter;
  const Memory in = memory;
  if (!graph.adds) std::fill(out.begin(), out.end(), 0.0F);
  for (Index p = 0; p < kPixels; ++p) {
    for (Index f = 0; f < graph.filters; ++f) {
      for (Index c = 0; c < graph.channels; ++c) {
        const auto src = static_cast<std::size_t>(p * graph.channels + c);
        const auto filter = static_cast<std::size_t>(f * graph.channels + c);
        const auto dst = static_cast<std::size_t>(p * graph.filters + f);
        if (&out == &memory.dst) out[dst] += in.src[src] * in.filter[filter];
        if (&out == &memory.src) out[src] += in.dst[dst] * in.filter[filter];
        if (&out == &memory.filter) out[filter] += in.src[src] * in.dst[dst];
      }
    }
  }
  return memory;
}

// As cublaslt.h has it.
void Multiply(const MatmulSpec& spec, const GemmOperands& operands) {
  const auto* a = static_cast<const float*>(operands.a);
  const auto* b = static_cast<const float*>(operands.b);
  auto* d = static_cast<float*>(operands.d);
  for (Index row = 0; row < spec.rows; ++row) {
    for (Index column = 0; column < spec.columns; ++column) {
      float sum = spec.adds ? d[row * spec.columns + column] : 0;
      for (Index i = 0; i < spec.inner; ++i) {
        sum += a[spec.transpose_a ? i * spec.rows + row : row * spec.inner + i] *
               b[spec.transpose_b ? column * spec.inner + i : i * spec.columns + column];
      }
      d[row * spec.columns + column] = sum;
    }
  }
}

TEST(ConvolutionProduct, IsTheConvolutionInEachPass) {
  for (const auto pass : {ConvolutionPass::kForward, ConvolutionPass::kBackwardData,
                          ConvolutionPass::kBackwardFilter}) {
    for (const bool adds : {false, true}) {
      ConvolutionGraph graph = kGraph;
      graph.pass = pass;
      graph.adds = adds;
      Memory memory;
      const auto spec = GemmOf(graph, {});
      ASSERT_TRUE(spec);
      Multiply(*spec, OperandsOf(pass, memory.src.data(), memory.filter.data(), memory.dst.data()));
      EXPECT_EQ(memory, Convolved(graph, {})) << ToString(graph);
    }
  }
}

TEST(ConvolutionProduct, HasTheTypesAndRulesOfTheConvolution) {
  ConvolutionGraph graph = kGraph;
  graph.dtype = DType::kBFloat16;
  const auto spec = GemmOf(graph, {.tf32 = true, .deterministic = true});
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->input, DType::kBFloat16);
  EXPECT_EQ(spec->output, DType::kBFloat16);
  EXPECT_TRUE(spec->tf32);
  EXPECT_TRUE(spec->deterministic);
  EXPECT_FALSE(spec->bias);
}

TEST(ConvolutionProduct, IsNoneWherePixelsAreSkippedOrSeveralAreSeen) {
  ConvolutionGraph wide = kGraph;
  wide.kernel = 3;
  wide.padding = 1;
  EXPECT_FALSE(GemmOf(wide, {}));
  ConvolutionGraph strided = kGraph;
  strided.stride = 2;
  EXPECT_FALSE(GemmOf(strided, {}));
  ConvolutionGraph padded = kGraph;
  padded.padding = 1;
  EXPECT_FALSE(GemmOf(padded, {}));
}

}  // namespace
}  // namespace trainer
