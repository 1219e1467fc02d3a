// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/norm_paces.h"

#include <cstdint>
#include <utility>

#include "trainer/backend/cuda/timing.h"

namespace trainer {
namespace {

std::size_t TensorBytes(const NormShape& shape) {
  return static_cast<std::size_t>(shape.pixels) * static_cast<std::size_t>(shape.padded) *
         SizeOf(shape.dtype);
}

std::string ToString(const NormSize& size) {
  return "batch norm of " + std::to_string(size.shape.pixels) + "x" +
         std::to_string(size.shape.padded) + ", " + std::string(NameOf(size.shape.dtype)) +
         (size.adds ? ", added" : "") + (size.has_mask ? ", with a mask" : "");
}

// Memory for both directions, which take as many tensors.
struct RaceMemory {
  ScratchMemory first, second, third, mask, channels, scratch;

  explicit RaceMemory(const NormSize& size)
      : first(TensorBytes(size.shape)),
        second(TensorBytes(size.shape)),
        third(size.adds ? TensorBytes(size.shape) : 0),
        mask(static_cast<std::size_t>(NormMaskBytes(size.shape))),
        channels(kArrays * static_cast<std::size_t>(size.shape.padded) * sizeof(float)),
        scratch(static_cast<std::size_t>(NormScratchFloats(size.shape)) * sizeof(float)) {}

  // `padded` floats, of kArrays.
  float* Channels(const NormShape& shape, int index) const {
    return static_cast<float*>(channels.data()) + std::ptrdiff_t{index} * shape.padded;
  }

  static constexpr std::size_t kArrays = 8;
};

NormPace RaceForward(const NormSize& size) {
  const RaceMemory memory(size);
  const auto channels = [&](int index) { return memory.Channels(size.shape, index); };
  const NormParameters parameters = {.scale = channels(0),
                                     .shift = channels(1),
                                     .running_mean = channels(2),
                                     .running_variance = channels(3)};
  NormForward call;
  call.src = {memory.first.data(), channels(4)};  // the pass that adds up has one pace
  call.residual = size.adds ? memory.third.data() : nullptr;
  call.dst = memory.second.data();
  call.relu = size.has_mask;
  call.of_batch = true;
  call.saved = channels(6);
  call.mask = size.has_mask ? static_cast<std::uint8_t*>(memory.mask.data()) : nullptr;
  call.scratch = static_cast<float*>(memory.scratch.data());
  return kNormPaces[FastestOf(kNormPaces.size(), [&](std::size_t i, cudaStream_t stream) {
    call.pace = kNormPaces[i];
    RunNormForward(size.shape, parameters, call, stream);
  })];
}

NormPace RaceBackward(const NormSize& size) {
  const RaceMemory memory(size);
  const auto channels = [&](int index) { return memory.Channels(size.shape, index); };
  NormBackward call;
  call.src = memory.first.data();
  call.mask = size.has_mask ? static_cast<const std::uint8_t*>(memory.mask.data()) : nullptr;
  call.diff_dst = memory.second.data();
  call.diff_src = memory.second.data();
  call.diff_residual = size.adds ? memory.third.data() : nullptr;
  call.diff_scale = channels(0);
  call.diff_shift = channels(1);
  call.of_batch = true;
  call.saved = channels(2);
  call.scratch = static_cast<float*>(memory.scratch.data());
  return kNormPaces[FastestOf(kNormPaces.size(), [&](std::size_t i, cudaStream_t stream) {
    call.pace = kNormPaces[i];
    RunNormBackward(size.shape, channels(4), call, stream);
  })];
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
  return Choose(size, "forward of a " + ToString(size), [&] { return RaceForward(size); });
}

NormPace NormPaces::Backward(const NormSize& size) {
  return Choose(size, "backward of a " + ToString(size), [&] { return RaceBackward(size); });
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
