// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/norms/norm_paces.h"

#include <functional>
#include <utility>

#include "trainer/backend/cuda/norms/norm_timing.h"
#include "trainer/backend/cuda/runtime/timing.h"

namespace trainer {
namespace {

std::string ToString(const NormSize& size) {
  return "batch norm of " + std::to_string(size.shape.pixels) + "x" +
         std::to_string(size.shape.padded) + ", " + std::string(NameOf(size.shape.dtype)) +
         (size.adds ? ", added" : "") + (size.has_mask ? ", with a mask" : "");
}

NormPace Fastest(const std::function<void(const NormPace&, cudaStream_t)>& run) {
  return kNormPaces[FastestOf(
      kNormPaces.size(), [&](std::size_t i, cudaStream_t stream) { run(kNormPaces[i], stream); })];
}

}  // namespace

std::string PlanOf(const NormPace& pace) {
  return "depth " + std::to_string(pace.depth) + ", waves " + std::to_string(pace.waves);
}

std::optional<NormPace> NormPaceOf(const std::string& plan) {
  for (const NormPace& pace : kNormPaces) {
    if (PlanOf(pace) == plan) return pace;
  }
  return std::nullopt;
}

NormPaces::NormPaces(DevicePlans plans, std::size_t least_bytes)
    : plans_(std::move(plans)), least_bytes_(least_bytes) {}

NormPace NormPaces::Forward(const NormSize& size) {
  return Choose(size, "forward of a " + ToString(size), [&] {
    const NormTimingMemory norm(size);
    return Fastest(
        [&](const NormPace& pace, cudaStream_t stream) { norm.RunForward(pace, stream); });
  });
}

NormPace NormPaces::Backward(const NormSize& size) {
  return Choose(size, "backward of a " + ToString(size), [&] {
    const NormTimingMemory norm(size);
    return Fastest(
        [&](const NormPace& pace, cudaStream_t stream) { norm.RunBackward(pace, stream); });
  });
}

NormPace NormPaces::Choose(const NormSize& size, const std::string& name,
                           const std::function<NormPace()>& race) {
  if (TensorBytes(size.shape) < least_bytes_) return kNormPaces.front();
  const auto known = known_.find(name);
  if (known != known_.end()) return known->second;
  const std::optional<std::string> kept = plans_.Find(name);
  std::optional<NormPace> pace = kept ? NormPaceOf(*kept) : std::nullopt;
  if (!pace) {
    pace = race();
    plans_.Add(name, PlanOf(*pace));
  }
  return known_.emplace(name, *pace).first->second;
}

}  // namespace trainer
