// SPDX-License-Identifier: Apache-2.0
//
// Which NormPace is the fastest for a batch norm on the current device.

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
std::string PlanOf(const NormPace& pace);
std::optional<NormPace> NormPaceOf(const std::string& plan);

class NormPaces {
 public:
  // Tensors below `least_bytes` get the first pace untimed.  Most of them are in the cache then, or
  // done before another pace could tell.
  static constexpr std::size_t kLeastBytes = std::size_t{16} << 20;
  explicit NormPaces(DevicePlans plans, std::size_t least_bytes = kLeastBytes);

  // As PlanCache has it; else all race, once for each size.  For construction only, as FastestOf.
  NormPace Forward(const NormSize& size);
  NormPace Backward(const NormSize& size);

 private:
  NormPace Choose(const NormSize& size, const std::string& name,
                  const std::function<NormPace()>& race);

  const DevicePlans plans_;
  const std::size_t least_bytes_;
  std::map<std::string, NormPace> known_;
};

}  // namespace trainer
