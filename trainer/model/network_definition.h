// SPDX-License-Identifier: Apache-2.0
//
// A network on a back end before it has any memory: its blocks, and a place for everything that
// they need for one batch size and image size.  model/network.h makes it one that runs.
//
// Used from one thread.  The back end outlives the plan.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
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
  bool has_ema = false;  // of weights and statistics, moving ones
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

}  // namespace trainer
