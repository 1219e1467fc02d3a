// SPDX-License-Identifier: Apache-2.0
//
// The convolutions of ResNet-50 v1.5.

#pragma once

#include <cstdint>
#include <vector>

#include "trainer/backend/cuda/libraries/cudnn_graph.h"
#include "trainer/backend/cuda/runtime/layout.h"

namespace trainer {

struct Layer {
  std::int64_t images, channels, height, width, filters, kernel, stride;
};

// The distinct convolutions of ResNet-50 v1.5 at 224 x 224: the stem, and of each stage the first
// block (with its shortcut), where the 3x3 has the stride, and the others.
inline std::vector<Layer> ResNet50(std::int64_t images) {
  std::vector<Layer> layers{{images, 3, 224, 224, 64, 7, 2}};
  std::int64_t channels = 64;
  std::int64_t src = 56;
  for (std::int64_t width = 64; width <= 512; width *= 2) {
    const std::int64_t stride = width == 64 ? 1 : 2;
    const std::int64_t dst = src / stride;
    layers.push_back({images, channels, src, src, width, 1, 1});
    layers.push_back({images, width, src, src, width, 3, stride});
    layers.push_back({images, width, dst, dst, 4 * width, 1, 1});
    layers.push_back({images, channels, src, src, 4 * width, 1, stride});
    layers.push_back({images, 4 * width, dst, dst, width, 1, 1});
    if (stride == 2) layers.push_back({images, width, dst, dst, width, 3, 1});
    channels = 4 * width;
    src = dst;
  }
  return layers;
}

// Its forward pass, with padding.
inline ConvolutionGraph GraphOf(const Layer& layer, DType dtype) {
  return {.images = layer.images,
          .channels = PaddedChannels(layer.channels),
          .height = layer.height,
          .width = layer.width,
          .filters = PaddedChannels(layer.filters),
          .kernel = layer.kernel,
          .stride = layer.stride,
          .padding = layer.kernel / 2,
          .dtype = dtype};
}

}  // namespace trainer
