// SPDX-License-Identifier: Apache-2.0
//
// Which NormLaunchConfig is the fastest for a batch norm on the current device.

#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "trainer/backend/cuda/norms/batch_norm_kernels.h"
#include "trainer/backend/cuda/runtime/timing.h"

namespace trainer {

// The text by which PlanCache has it.
std::string PlanOf(const NormLaunchConfig& config);

// Tensors of fewer bytes get the first launch configuration untimed.  Most of them are in the cache
// then, or done before another one could be told apart.
inline constexpr std::size_t kMinTimedBytes = std::size_t{16} << 20;

// As the autotuner knows it; else all are timed.  For construction only, as FastestOf.
NormLaunchConfig ForwardLaunchConfig(Autotuner& autotuner, const NormSize& size,
                                     std::size_t min_bytes = kMinTimedBytes);
NormLaunchConfig BackwardLaunchConfig(Autotuner& autotuner, const NormSize& size,
                                      std::size_t min_bytes = kMinTimedBytes);

// Batch norms that run to be timed, on memory of their own.

inline constexpr std::array<NormLaunchConfig, 4> kNormLaunchConfigs = {
    {{1, 1}, {2, 1}, {1, 4}, {2, 4}}};

// Of one of the tensors that a batch norm reads or writes.
std::size_t TensorBytes(const NormShape& shape);

// For one run at a time of one batch norm in training, of which the sums are given: the pass that
// adds up has one launch configuration, and goes with the convolution before.
class NormTimingMemory {
 public:
  explicit NormTimingMemory(const NormSize& size);

  // Each queues it on `stream`.
  void RunForward(const NormLaunchConfig& config, cudaStream_t stream) const;
  void RunBackward(const NormLaunchConfig& config, cudaStream_t stream) const;
  // As far as it adds up.
  void RunBackwardSums(const NormLaunchConfig& config, cudaStream_t stream) const;

 private:
  // `padded` floats, of kArrays.
  float* Channels(int index) const;
  NormParameters parameters() const;
  NormBackward backward(const NormLaunchConfig& config) const;
  NormSource src() const { return {first_.data(), Channels(4)}; }

  static constexpr std::size_t kArrays = 10;
  const NormSize size_;
  // Both directions take as many tensors.
  const ScratchMemory first_, second_, third_, mask_, channels_, scratch_;
};

}  // namespace trainer
