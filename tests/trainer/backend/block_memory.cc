// SPDX-License-Identifier: Apache-2.0

#include "tests/trainer/backend/block_memory.h"

#include <algorithm>
#include <cmath>

namespace trainer {
BlockMemory::BlockMemory(Device& device, const std::vector<Block*>& blocks)
    : device_(device), between_(static_cast<int>(blocks.size())) {
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const int forward = static_cast<int>(i);
    const std::string number = std::to_string(i);
    blocks[i]->Reserve({.forward = forward, .backward = 2 * between_ - forward}, "block" + number,
                       plan_);
    for (ParameterSpec parameter : blocks[i]->parameters()) {
      if (blocks.size() > 1) parameter.name = number + "." + parameter.name;
      parameters_.push_back(std::move(parameter));
    }
  }
  plan_.Solve();
  arena_ = static_cast<std::byte*>(device.Scratch(plan_.total_bytes()));
  for (const ParameterSpec& parameter : parameters_) {
    const Tensor gradient = parameter.statistic ? Tensor{} : device.Make(parameter.desc);
    bindings_.push_back({device.Make(parameter.desc), gradient});
  }
  auto first = bindings_.begin();
  for (Block* block : blocks) {
    const auto last = first + static_cast<std::ptrdiff_t>(block->parameters().size());
    block->Bind(plan_, arena_, {first, last});
    first = last;
  }
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
    if (request.first_use > between_ || request.last_use < between_) continue;
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
