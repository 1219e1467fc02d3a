// SPDX-License-Identifier: Apache-2.0

#include <cmath>
#include <utility>

#include "trainer/backend/reference/reference_ops.h"

namespace trainer {
namespace {

class ReferenceSgd final : public Sgd {
 public:
  explicit ReferenceSgd(std::vector<ParameterSegment> segments) : segments_(std::move(segments)) {}

  void Step(const SgdParameters* call_memory, float* weight, float* momentum,
            const FlatGradients& gradients, void* compute_copy, UpdateSums* sums,
            Stream& /*stream*/) override {
    const SgdParameters call = *call_memory;
    // The network computes in fp32, on `weight` itself.
    DDL_CHECK(compute_copy == nullptr && gradients.compute == nullptr);
    const float* gradient = gradients.fp32;
    double sum_of_squares = 0;
    double gradient_squares = 0;
    bool finite = true;
    for (const ParameterSegment& segment : segments_) {
      for (std::size_t i = segment.begin; i < segment.begin + segment.count; ++i) {
        if (segment.decay) sum_of_squares += double{weight[i]} * weight[i];
        finite = finite && std::isfinite(gradient[i]);
        gradient_squares += double{gradient[i]} * gradient[i];
      }
    }
    *sums = {static_cast<float>(sum_of_squares), finite ? 0.0F : 1.0F,
             static_cast<float>(gradient_squares)};
    if (!finite) return;

    for (const ParameterSegment& segment : segments_) {
      const double decay = segment.decay ? call.weight_decay : 0;
      for (std::size_t i = segment.begin; i < segment.begin + segment.count; ++i) {
        const double g = double{call.gradient_scale} * gradient[i] + decay * weight[i];
        const double v = double{call.momentum_factor} * momentum[i] + g;
        momentum[i] = static_cast<float>(v);
        weight[i] = static_cast<float>(weight[i] - call.learning_rate * v);
      }
    }
  }

 private:
  std::vector<ParameterSegment> segments_;
};

}  // namespace

std::unique_ptr<Sgd> MakeReferenceSgd(std::vector<ParameterSegment> segments) {
  return std::make_unique<ReferenceSgd>(std::move(segments));
}

}  // namespace trainer
