// SPDX-License-Identifier: Apache-2.0
//
// Which NormLaunchConfig is the fastest for a batch norm on the current device.

#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "trainer/backend/cuda/norms/batch_norm_kernels.h"
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

}  // namespace trainer
