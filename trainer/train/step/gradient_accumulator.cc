// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/step/gradient_accumulator.h"

#include <algorithm>

namespace trainer {

GradientAccumulator::GradientAccumulator(Backend& backend, const Network& network)
    : backend_(backend),
      gradients_(network.gradients()),
      elements_(network.elements()),
      compute_from_(std::min(gradients_.compute_from, elements_)),
      kept_(backend.AllocateDevice(compute_from_ * sizeof(float))) {}

std::size_t GradientAccumulator::BytesFor(const ParameterLayout& layout) {
  return std::min(layout.compute_from, layout.elements) * sizeof(float);
}

void GradientAccumulator::Keep(bool is_first, Stream& stream) {
  auto* kept = reinterpret_cast<float*>(kept_.data());
  float* sums = gradients_.fp32 + compute_from_;
  const void* values = OfComputeType(compute_from_);
  const std::size_t count = elements_ - compute_from_;
  if (is_first) {
    backend_.CopyOnDevice(kept, gradients_.fp32, kept_.bytes(), stream);
    if (count > 0) backend_.Widen(values, sums, count, stream);
  } else {
    backend_.Add(gradients_.fp32, DType::kFloat32, kept, compute_from_, stream);
    if (count > 0) backend_.Add(values, backend_.compute_type(), sums, count, stream);
  }
}

void GradientAccumulator::Complete(std::size_t begin, std::size_t end, Stream& stream) {
  const std::size_t middle = std::clamp(compute_from_, begin, end);
  if (begin < middle) {
    const auto* kept = reinterpret_cast<const float*>(kept_.data());
    backend_.Add(kept + begin, DType::kFloat32, gradients_.fp32 + begin, middle - begin, stream);
  }
  if (middle < end) {
    backend_.Add(OfComputeType(middle), backend_.compute_type(), gradients_.fp32 + middle,
                 end - middle, stream);
  }
}

const void* GradientAccumulator::OfComputeType(std::size_t begin) const {
  if (gradients_.compute == nullptr) return nullptr;
  return static_cast<const std::byte*>(gradients_.compute) +
         begin * SizeOf(backend_.compute_type());
}

}  // namespace trainer
