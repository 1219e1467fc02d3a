// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/norms/norm_autotune.h"

#include <algorithm>

namespace trainer {
namespace {

std::string ToString(const NormSize& size) {
  return "batch norm of " + std::to_string(size.shape.pixels) + "x" +
         std::to_string(size.shape.padded) + ", " + std::string(NameOf(size.shape.dtype)) +
         (size.adds ? ", added" : "") + (size.has_mask ? ", with a mask" : "");
}

using Run = void (NormTimingMemory::*)(const NormLaunchConfig&, cudaStream_t) const;

NormLaunchConfig Choose(Autotuner& autotuner, const NormSize& size, const char* direction, Run run,
                        std::size_t min_bytes) {
  if (TensorBytes(size.shape) < min_bytes) return kNormLaunchConfigs.front();
  std::array<std::string, kNormLaunchConfigs.size()> plans;
  std::transform(kNormLaunchConfigs.begin(), kNormLaunchConfigs.end(), plans.begin(), PlanOf);
  return kNormLaunchConfigs[autotuner.Choose(direction + ToString(size), plans, [&] {
    const NormTimingMemory norm(size);
    return FastestOf(plans.size(), [&](std::size_t i, cudaStream_t stream) {
      (norm.*run)(kNormLaunchConfigs[i], stream);
    });
  })];
}

}  // namespace

std::string PlanOf(const NormLaunchConfig& config) {
  return "depth " + std::to_string(config.depth) + ", waves " + std::to_string(config.waves);
}

NormLaunchConfig ForwardLaunchConfig(Autotuner& autotuner, const NormSize& size,
                                     std::size_t min_bytes) {
  return Choose(autotuner, size, "forward of a ", &NormTimingMemory::RunForward, min_bytes);
}
NormLaunchConfig BackwardLaunchConfig(Autotuner& autotuner, const NormSize& size,
                                      std::size_t min_bytes) {
  return Choose(autotuner, size, "backward of a ", &NormTimingMemory::RunBackward, min_bytes);
}

std::size_t TensorBytes(const NormShape& shape) {
  return static_cast<std::size_t>(shape.pixels) * static_cast<std::size_t>(shape.padded) *
         SizeOf(shape.dtype);
}

NormTimingMemory::NormTimingMemory(const NormSize& size)
    : size_(size),
      first_(TensorBytes(size.shape)),
      second_(TensorBytes(size.shape)),
      third_(size.adds ? TensorBytes(size.shape) : 0),
      mask_(static_cast<std::size_t>(NormMaskBytes(size.shape))),
      channels_(kArrays * static_cast<std::size_t>(size.shape.padded) * sizeof(float)),
      scratch_(static_cast<std::size_t>(NormScratchFloats(size.shape)) * sizeof(float)) {}

float* NormTimingMemory::Channels(int index) const {
  return static_cast<float*>(channels_.data()) + std::ptrdiff_t{index} * size_.shape.padded;
}

NormParameters NormTimingMemory::parameters() const {
  return {.scale = Channels(0),
          .shift = Channels(1),
          .running_mean = Channels(2),
          .running_variance = Channels(3)};
}

void NormTimingMemory::RunForward(const NormLaunchConfig& config, cudaStream_t stream) const {
  NormForward call;
  call.config = config;
  call.src = src();
  call.residual = size_.adds ? third_.data() : nullptr;
  call.dst = second_.data();
  call.relu = size_.has_mask;
  call.of_batch = true;
  call.saved = Channels(6);
  call.mask = size_.has_mask ? static_cast<std::uint8_t*>(mask_.data()) : nullptr;
  call.scratch = static_cast<float*>(scratch_.data());
  RunNormForward(size_.shape, parameters(), call, stream);
}

NormBackward NormTimingMemory::backward(const NormLaunchConfig& config) const {
  NormBackward call;
  call.config = config;
  call.src = first_.data();
  call.mask = size_.has_mask ? static_cast<const std::uint8_t*>(mask_.data()) : nullptr;
  call.diff_dst = second_.data();
  call.diff_src = second_.data();
  call.diff_residual = size_.adds ? third_.data() : nullptr;
  call.diff_scale = Channels(0);
  call.diff_shift = Channels(1);
  call.of_batch = true;
  call.saved = Channels(2);
  call.scratch = static_cast<float*>(scratch_.data());
  return call;
}

void NormTimingMemory::RunBackward(const NormLaunchConfig& config, cudaStream_t stream) const {
  RunNormBackward(size_.shape, Channels(6), backward(config), stream);
}

void NormTimingMemory::RunBackwardSums(const NormLaunchConfig& config, cudaStream_t stream) const {
  RunNormBackwardSums(size_.shape, backward(config), stream);
}

}  // namespace trainer
