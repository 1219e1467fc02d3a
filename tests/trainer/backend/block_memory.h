// SPDX-License-Identifier: Apache-2.0
//
// What the model does for a block, for one block alone: an arena from a memory plan, and parameters
// with gradients.

#pragma once

#include <vector>

#include "tests/trainer/backend/probe.h"
#include "trainer/backend/op_recorder.h"

namespace trainer {

class BlockMemory {
 public:
  BlockMemory(Device& device, Block& block);

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
  const std::vector<ParameterSpec>& parameters_;
  MemoryPlanner plan_;
  std::byte* arena_;
  std::vector<ParameterBinding> bindings_;
};

}  // namespace trainer
