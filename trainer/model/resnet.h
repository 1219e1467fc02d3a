// SPDX-License-Identifier: Apache-2.0
//
// The architectures, as a table of stages: ResNet v1.5 of any depth (He et al., "Deep Residual
// Learning for Image Recognition", table 1, with the stride on the 3x3 convolution).  A new network
// is a new row.  Names and parameters are torchvision's.

#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trainer {

// "layer1" .. "layer4" of torchvision: `blocks` bottlenecks, the first of them with the stride.
struct Stage {
  int blocks = 0;
  std::int64_t mid_channels = 0;
  std::int64_t stride = 1;
};

// Channels that leave a bottleneck, for each of its mid_channels.
inline constexpr std::int64_t kExpansion = 4;

struct Architecture {
  std::string_view name;
  std::int64_t stem_channels = 0;
  std::array<Stage, 4> stages;
  bool test_only = false;  // too small to learn anything: for tests, not in --help
};

// Throws Error(EX_USAGE) that lists the names that are not test_only.
const Architecture& FindArchitecture(std::string_view name);

// All names, test nets last.
std::vector<std::string> ArchitectureNames();

// One bottleneck of a network, in the order of the forward pass.
struct BottleneckPlace {
  std::string name;  // torchvision's: "layer1.0"
  std::int64_t mid_channels = 0;
  std::int64_t out_channels = 0;
  std::int64_t stride = 1;
};
std::vector<BottleneckPlace> BottlenecksOf(const Architecture& architecture);

}  // namespace trainer
