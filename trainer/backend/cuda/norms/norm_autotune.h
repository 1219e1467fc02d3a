// SPDX-License-Identifier: Apache-2.0
//
// Which NormLaunchConfig is the fastest for a batch norm on the current device.

#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "trainer/backend/cuda/norms/batch_norm_kernels.h"
#include "trainer/backend/cuda/runtime/timing.h"
#include "trainer/backend/plan_cache.h"

namespace trainer {

// The text by which PlanCache has it.
std::string PlanOf(const NormLaunchConfig& config);
std::optional<NormLaunchConfig> ParseNormLaunchConfig(const std::string& plan);

class NormAutotuner {
 public:
  // Tensors below `min_bytes` get the first launch configuration untimed.  Most of them are in the
  // cache then, or done before another one could be told apart.
  static constexpr std::size_t kMinBytes = std::size_t{16} << 20;
  explicit NormAutotuner(DevicePlanCache plans, std::size_t min_bytes = kMinBytes);

  // As PlanCache has it; else all are timed, once for each size.  For construction only, as
  // FastestOf.
  NormLaunchConfig Forward(const NormSize& size);
  NormLaunchConfig Backward(const NormSize& size);

 private:
  NormLaunchConfig Choose(const NormSize& size, const std::string& name,
                          const std::function<NormLaunchConfig()>& autotune);

  const DevicePlanCache plans_;
  const std::size_t min_bytes_;
  std::map<std::string, NormLaunchConfig> known_;
};

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
