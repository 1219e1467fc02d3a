// SPDX-License-Identifier: Apache-2.0

#include "trainer/model/resnet.h"

#include "trainer/core/error.h"

namespace trainer {
namespace {

constexpr Architecture kArchitectures[] = {
    {"resnet50", 64, {{{3, 64, 1}, {4, 128, 2}, {6, 256, 2}, {3, 512, 2}}}},
    {"resnet101", 64, {{{3, 64, 1}, {4, 128, 2}, {23, 256, 2}, {3, 512, 2}}}},
    {"resnet152", 64, {{{3, 64, 1}, {8, 128, 2}, {36, 256, 2}, {3, 512, 2}}}},
    // One bottleneck with and one without a downsample of stride 2, and little else.
    {"resnet_tiny", 8, {{{1, 2, 1}, {1, 4, 2}, {1, 4, 2}, {1, 8, 2}}}, /*test_only=*/true},
};

}  // namespace

const Architecture& FindArchitecture(std::string_view name) {
  std::string known;
  for (const Architecture& architecture : kArchitectures) {
    if (architecture.name == name) return architecture;
    if (architecture.test_only) continue;
    known += (known.empty() ? "" : ", ") + std::string(architecture.name);
  }
  throw Error(EX_USAGE,
              "--arch: no network is called '" + std::string(name) + "'; there are " + known);
}

std::vector<std::string> ArchitectureNames() {
  std::vector<std::string> names;
  for (const Architecture& architecture : kArchitectures) names.emplace_back(architecture.name);
  return names;
}

std::vector<BottleneckPlace> BottlenecksOf(const Architecture& architecture) {
  std::vector<BottleneckPlace> places;
  for (std::size_t stage = 0; stage < architecture.stages.size(); ++stage) {
    const auto& [blocks, mid_channels, stride] = architecture.stages[stage];
    for (int block = 0; block < blocks; ++block) {
      places.push_back({"layer" + std::to_string(stage + 1) + "." + std::to_string(block),
                        mid_channels, mid_channels * kExpansion, block == 0 ? stride : 1});
    }
  }
  return places;
}

}  // namespace trainer
