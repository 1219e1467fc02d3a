// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/norms/norm_autotune.h"

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

NormLaunchConfig Fastest(const std::function<void(const NormLaunchConfig&, cudaStream_t)>& run) {
  return kNormLaunchConfigs[FastestOf(
      kNormLaunchConfigs.size(),
      [&](std::size_t i, cudaStream_t stream) { run(kNormLaunchConfigs[i], stream); })];
}

}  // namespace

std::string PlanOf(const NormLaunchConfig& config) {
  return "depth " + std::to_string(config.depth) + ", waves " + std::to_string(config.waves);
}

std::optional<NormLaunchConfig> ParseNormLaunchConfig(const std::string& plan) {
  for (const NormLaunchConfig& config : kNormLaunchConfigs) {
    if (PlanOf(config) == plan) return config;
  }
  return std::nullopt;
}

NormAutotuner::NormAutotuner(DevicePlanCache plans, std::size_t min_bytes)
    : plans_(std::move(plans)), min_bytes_(min_bytes) {}

NormLaunchConfig NormAutotuner::Forward(const NormSize& size) {
  return Choose(size, "forward of a " + ToString(size), [&] {
    const NormTimingMemory norm(size);
    return Fastest([&](const NormLaunchConfig& config, cudaStream_t stream) {
      norm.RunForward(config, stream);
    });
  });
}

NormLaunchConfig NormAutotuner::Backward(const NormSize& size) {
  return Choose(size, "backward of a " + ToString(size), [&] {
    const NormTimingMemory norm(size);
    return Fastest([&](const NormLaunchConfig& config, cudaStream_t stream) {
      norm.RunBackward(config, stream);
    });
  });
}

NormLaunchConfig NormAutotuner::Choose(const NormSize& size, const std::string& name,
                                       const std::function<NormLaunchConfig()>& autotune) {
  if (TensorBytes(size.shape) < min_bytes_) return kNormLaunchConfigs.front();
  const auto known = known_.find(name);
  if (known != known_.end()) return known->second;
  const std::optional<std::string> kept = plans_.Find(name);
  std::optional<NormLaunchConfig> config = kept ? ParseNormLaunchConfig(*kept) : std::nullopt;
  if (!config) {
    config = autotune();
    plans_.Add(name, PlanOf(*config));
  }
  return known_.emplace(name, *config).first->second;
}

}  // namespace trainer
