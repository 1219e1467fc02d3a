// SPDX-License-Identifier: Apache-2.0
//
// What one pass of a convolution computes on channels-last memory, with what may be done together
// with it.  Pure.

#pragma once

#include <cstdint>
#include <string>

#include "trainer/core/dtype.h"

namespace trainer {

enum class ConvolutionPass : std::uint8_t { kForward, kBackwardData, kBackwardFilter };

// One convolution (backend/ops.h) on channels-last memory.  Channels and filters are counted with
// their padding (layout.h).  Sums are fp32.
struct ConvolutionGraph {
  std::int64_t images = 0, channels = 0, height = 0, width = 0;
  std::int64_t filters = 0, kernel = 1, stride = 1, padding = 0;
  DType dtype = DType::kFloat32;
  ConvolutionPass pass = ConvolutionPass::kForward;
  bool adds = false;  // to its output, instead of overwriting it
  // Forward only: also of each filter the sum of the result over images and pixels, and then of
  // each the sum of squares, in fp32.
  bool sums = false;
  // Backward data only, and not adding: src is a ReLU over a batch norm, and the result is the
  // gradient before that ReLU; what the batch norm needs of it is summed.
  bool masked = false;

  std::int64_t dst_height() const { return (height + 2 * padding - kernel) / stride + 1; }
  std::int64_t dst_width() const { return (width + 2 * padding - kernel) / stride + 1; }
  bool operator==(const ConvolutionGraph&) const = default;
};

// "backward data of a convolution 256x64x56x56 to 64 channels, kernel 3, stride 1, padding 1, F16".
std::string ToString(const ConvolutionGraph& graph);

inline constexpr std::int64_t kTensorAlignment = 16;  // bytes

// Of the gradient that is gated, for each channel: the sum of its products with the normalized
// input, its sum, and three that cuDNN makes of them.
inline constexpr int kGradientSumArrays = 5;

// What a pass of a convolution reads and writes, all aligned to kTensorAlignment.  src, filter,
// dst: tensors or their gradients, as the pass has it; the output is overwritten or added to.
struct ConvolutionOperands {
  void* src = nullptr;
  void* filter = nullptr;
  void* dst = nullptr;
  // Null unless the graph has them: 2 x filters floats if it has sums, kGradientSumArrays x
  // channels if it is gated.
  void* sums = nullptr;
  // Null unless it is gated: what the batch norm has read, and its mean, 1 / deviation, scale and
  // shift, of all channels each.
  const void* relu_mask = nullptr;
  const float* statistics = nullptr;
};

}  // namespace trainer
