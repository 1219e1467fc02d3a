// SPDX-License-Identifier: Apache-2.0
//
// What the model does for blocks, for one block alone or some that follow each other: an arena from
// a memory plan, and parameters with gradients.

#pragma once

#include <vector>

#include "tests/trainer/backend/probe.h"
#include "trainer/backend/op_recorder.h"

namespace trainer {

class BlockMemory {
 public:
  BlockMemory(Device& device, Block& block) : BlockMemory(device, std::vector<Block*>{&block}) {}
  // In the order of the forward pass.  Of several, names of parameters begin with the block's
  // number, "0.conv1.weight".
  BlockMemory(Device& device, const std::vector<Block*>& blocks);

  // One per parameter and statistic, by its name.
  std::vector<Input> inputs() const;
  // Fills parameters and statistics; everything else becomes NaN, as before a first step.
  void Import(const Values& inputs);
  // Whatever the block did not reserve from forward to backward becomes NaN: other blocks were
  // here.
  void PoisonBetweenForwardAndBackward();

  // As the network does: by the names of the parameters.
  void NameLayers(OpRecorder& recorder) const;

  void ExportStatistics(Values& values);
  void ExportGradients(Values& values);

 private:
  Device& device_;
  const int between_;  // on the clock of the plan: forward and backward
  std::vector<ParameterSpec> parameters_;
  MemoryPlanner plan_;
  std::byte* arena_;
  std::vector<ParameterBinding> bindings_;
};

}  // namespace trainer
