// SPDX-License-Identifier: Apache-2.0

#include "tests/trainer/backend/block_memory.h"

#include <algorithm>
#include <cmath>

namespace trainer {
namespace {

constexpr BlockTimes kTimes{.forward = 0, .backward = 2};
constexpr int kBetween = 1;

}  // namespace

BlockMemory::BlockMemory(Device& device, Block& block)
    : device_(device), parameters_(block.parameters()) {
  block.Reserve(kTimes, "block", plan_);
  plan_.Solve();
  arena_ = static_cast<std::byte*>(device.Scratch(plan_.total_bytes()));
  for (const ParameterSpec& parameter : parameters_) {
    const Tensor gradient = parameter.statistic ? Tensor{} : device.Make(parameter.desc);
    bindings_.push_back({device.Make(parameter.desc), gradient});
  }
  block.Bind(plan_, arena_, bindings_);
}

std::vector<Input> BlockMemory::inputs() const {
  std::vector<Input> inputs;
  for (const ParameterSpec& parameter : parameters_) {
    const bool filter = parameter.shape.rank() > 1;
    // Filters scaled so that values stay near 1 on the way through the block.
    const double fan_in = filter ? static_cast<double>(parameter.shape.elements()) /
                                       static_cast<double>(parameter.shape[0])
                                 : 1;
    const bool around_one = !filter && parameter.init == Init::kOnes;
    inputs.push_back({parameter.name, parameter.shape,
                      around_one ? Fill::kAroundOne : Fill::kNormal,
                      filter ? std::exp2(-std::round(std::log2(fan_in) / 2)) : 1});
  }
  return inputs;
}

void BlockMemory::Import(const Values& inputs) {
  device_.Poison(arena_, plan_.total_bytes());
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    device_.Import(inputs.at(parameters_[i].name), bindings_[i].value);
    const Tensor& gradient = bindings_[i].gradient;
    if (gradient) device_.Poison(gradient.data, gradient.desc.bytes);
  }
}

void BlockMemory::PoisonBetweenForwardAndBackward() {
  std::vector<std::uint8_t> bytes(plan_.total_bytes(), 0xFF);
  const auto now = device_.Download<std::uint8_t>(arena_, bytes.size());
  for (const MemoryPlanner::Request& request : plan_.requests()) {
    if (request.first_use > kBetween || request.last_use < kBetween) continue;
    std::copy_n(now.begin() + static_cast<std::ptrdiff_t>(request.offset), request.bytes,
                bytes.begin() + static_cast<std::ptrdiff_t>(request.offset));
  }
  device_.backend().CopyToDevice(arena_, bytes.data(), bytes.size(), device_.stream());
  device_.stream().Synchronize();
}

void BlockMemory::NameLayers(OpRecorder& recorder) const {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    recorder.NameLayer(bindings_[i].value.data, parameters_[i].name);
    recorder.NameLayer(bindings_[i].gradient.data, parameters_[i].name);
  }
}

void BlockMemory::ExportStatistics(Values& values) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].statistic) values[parameters_[i].name] = device_.Export(bindings_[i].value);
  }
}

void BlockMemory::ExportGradients(Values& values) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor& gradient = bindings_[i].gradient;
    if (gradient) values[parameters_[i].name] = device_.Export(gradient);
  }
}

}  // namespace trainer
