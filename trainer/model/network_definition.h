// SPDX-License-Identifier: Apache-2.0
//
// A network on a back end before it has any memory: its blocks, and a place for everything that
// they need for one batch size and image size.  model/network.h makes it one that runs.
//
// Used from one thread.  The back end outlives the plan.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/backend/backend.h"
#include "trainer/core/memory_planner.h"
#include "trainer/model/parameters.h"

namespace trainer {

struct NetworkSpec {
  std::string arch = "resnet50";
  std::int64_t batch_size = 0;
  std::int64_t height = 224;
  std::int64_t width = 224;
  std::int64_t classes = 1000;
  float label_smoothing = 0;
  double ema = 0;  // decay of the moving averages of weights and statistics; 0: none are kept

  bool has_ema() const { return ema > 0; }
};

// Memory of the device, in bytes.
struct NetworkBytes {
  std::size_t weights = 0;  // with those of the compute type, and the statistics
  std::size_t gradients = 0;
  std::size_t momentum = 0;
  std::size_t ema = 0;
  std::size_t activations = 0;  // the arena, less:
  std::size_t workspace = 0;    // of the one block that computes, when most is in use

  std::size_t total() const {
    return weights + gradients + momentum + ema + activations + workspace;
  }
};

struct NetworkDefinition {
  NetworkDefinition() = default;  // no aggregate: braces mean a NetworkSpec

  struct Body {
    std::unique_ptr<Bottleneck> block;
    std::string name;
  };
  // What leaves a block and enters the next, and its gradient.
  struct Activation {
    TensorDesc desc;
    int value_id;  // of the arena's requests
    int gradient_id;
  };

  NetworkSpec spec;
  DType compute_type = DType::kFloat32;
  std::unique_ptr<Stem> stem;
  std::vector<Body> bodies;
  std::unique_ptr<Head> head;
  ParameterLayout layout;
  MemoryPlanner arena;                  // solved
  std::vector<Activation> activations;  // [b] leaves block b

  NetworkBytes bytes() const;
  // One line for each memory and for each request of the arena, for people.
  std::vector<std::string> Describe() const;
};

// Allocates nothing that stays, but a back end may try its ops, for which it takes memory of the
// device.
NetworkDefinition DefineNetwork(Backend& backend, const NetworkSpec& spec);

// The architectures, as a table of stages: ResNet v1.5 of any depth (He et al., "Deep Residual
// Learning for Image Recognition", table 1, with the stride on the 3x3 convolution).  A new network
// is a new row.  Names and parameters are torchvision's.

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
