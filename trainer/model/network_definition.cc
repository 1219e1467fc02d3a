// SPDX-License-Identifier: Apache-2.0

#include "trainer/model/network_definition.h"

#include <cstdio>
#include <utility>

#include "trainer/core/error.h"

namespace trainer {
namespace {

void MakeBlocks(Backend& backend, NetworkDefinition& plan) {
  const NetworkSpec& spec = plan.spec;
  const Architecture& architecture = FindArchitecture(spec.arch);
  plan.stem =
      backend.MakeStem({spec.batch_size, spec.height, spec.width, architecture.stem_channels});
  TensorDesc src = plan.stem->dst();
  for (const BottleneckPlace& place : BottlenecksOf(architecture)) {
    auto block =
        backend.MakeBottleneck({src, place.mid_channels, place.out_channels, place.stride});
    src = block->dst();
    if (!plan.bodies.empty()) block->set_below(plan.bodies.back().block->end());
    plan.bodies.push_back({std::move(block), place.name});
  }
  plan.head = backend.MakeHead({src, spec.classes, spec.label_smoothing});

  std::vector<BlockParameters> blocks;
  blocks.push_back({"", plan.stem->parameters()});
  for (const NetworkDefinition::Body& body : plan.bodies) {
    blocks.push_back({body.name + ".", body.block->parameters()});
  }
  blocks.push_back({"", plan.head->parameters()});
  plan.layout = LayOutParameters(blocks);
}

// The clock of a step: block b runs forward at b and backward at 2B-1-b.
void PlanArena(NetworkDefinition& plan) {
  const int count = static_cast<int>(plan.bodies.size()) + 2;
  const auto times = [count](int block) { return BlockTimes{block, 2 * count - 1 - block}; };

  plan.stem->Reserve(times(0), "stem", plan.arena);
  for (int b = 1; b < count - 1; ++b) {
    const NetworkDefinition::Body& body = plan.bodies[static_cast<std::size_t>(b - 1)];
    body.block->Reserve(times(b), body.name, plan.arena);
  }
  plan.head->Reserve(times(count - 1), "head", plan.arena);

  const auto reserve = [&](int block, const std::string& name, const TensorDesc& desc) {
    const int backward = times(block).backward;
    plan.activations.push_back(
        {desc, plan.arena.Reserve(name + " dst", desc.bytes, times(block).forward, backward),
         plan.arena.Reserve(name + " diff_dst", desc.bytes, backward - 1, backward)});
  };
  reserve(0, "stem", plan.stem->dst());
  for (int b = 1; b < count - 1; ++b) {
    const NetworkDefinition::Body& body = plan.bodies[static_cast<std::size_t>(b - 1)];
    reserve(b, body.name, body.block->dst());
  }
  plan.arena.Solve();
}

}  // namespace

NetworkBytes NetworkDefinition::bytes() const {
  const std::size_t of_type = compute_type == DType::kFloat32 ? 0 : SizeOf(compute_type);
  const std::size_t statistics = layout.statistic_elements * sizeof(float);
  NetworkBytes bytes;
  bytes.weights = layout.elements * (sizeof(float) + of_type) + statistics;
  bytes.gradients = layout.elements * (sizeof(float) + of_type);
  bytes.momentum = layout.elements * sizeof(float);
  if (spec.has_ema()) bytes.ema = layout.elements * sizeof(float) + statistics;
  bytes.workspace = arena.passing_bytes();
  bytes.activations = arena.total_bytes() - bytes.workspace;
  return bytes;
}

std::vector<std::string> NetworkDefinition::Describe() const {
  std::vector<std::string> rows;
  const auto add = [&rows](const std::string& name, std::size_t bytes, const std::string& more) {
    char row[160];
    std::snprintf(row, sizeof row, "%-32s %14zu bytes%s", name.c_str(), bytes, more.c_str());
    rows.emplace_back(row);
  };
  const std::size_t elements = layout.elements;
  add("weights", elements * sizeof(float), "");
  add("gradients", elements * sizeof(float), "");
  add("momentum", elements * sizeof(float), "");
  add("statistics", layout.statistic_elements * sizeof(float), "");
  if (spec.has_ema()) add("EMA", bytes().ema, "");
  if (compute_type != DType::kFloat32) {
    add("weights, compute type", elements * SizeOf(compute_type), "");
    add("gradients, compute type", elements * SizeOf(compute_type), "");
  }
  add("arena", arena.total_bytes(), "");
  for (const MemoryPlanner::Request& request : arena.requests()) {
    add("  " + request.name, request.bytes,
        "  at " + std::to_string(request.offset) + ", in use from " +
            std::to_string(request.first_use) + " to " + std::to_string(request.last_use));
  }
  return rows;
}

NetworkDefinition DefineNetwork(Backend& backend, const NetworkSpec& spec) {
  DDL_CHECK(spec.batch_size > 0 && spec.classes > 1);
  NetworkDefinition plan;
  plan.spec = spec;
  plan.compute_type = backend.compute_type();
  MakeBlocks(backend, plan);
  PlanArena(plan);
  return plan;
}

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
