// SPDX-License-Identifier: Apache-2.0

#include <cmath>
#include <utility>

#include "trainer/backend/reference/reference_ops.h"

namespace trainer {
namespace {

// What both optimizers do: the sums, and that nothing changes after a gradient that is not finite.
class ReferenceOptimizer : public Optimizer {
 public:
  explicit ReferenceOptimizer(std::vector<ParameterSegment> segments)
      : segments_(std::move(segments)) {}

  void Step(const UpdateParameters* call_memory, float* weight, float* momentum,
            const FlatGradients& gradients, void* compute_copy, UpdateSums* sums,
            Stream& /*stream*/) override {
    // The network computes in fp32, on `weight` itself.
    DDL_CHECK(compute_copy == nullptr && gradients.compute == nullptr);
    const float* gradient = gradients.fp32;
    double sum_of_squares = 0;
    double gradient_squares = 0;
    for (const ParameterSegment& segment : segments_) {
      if (segment.decay) sum_of_squares += Squares(weight, segment);
      gradient_squares += Squares(gradient, segment);
    }
    const bool is_used = AllFinite(gradient) && !FollowsOneLeftOut(*call_memory);
    *sums = {static_cast<float>(sum_of_squares), is_used ? 0.0F : 1.0F,
             static_cast<float>(gradient_squares)};
    if (!is_used) return;
    for (const ParameterSegment& segment : segments_) {
      Update(*call_memory, segment, gradient, weight, momentum);
    }
  }

 protected:
  static double Squares(const float* values, const ParameterSegment& segment) {
    double sum = 0;
    for (std::size_t i = segment.begin; i < segment.begin + segment.count; ++i) {
      sum += double{values[i]} * values[i];
    }
    return sum;
  }

 private:
  virtual void Update(const UpdateParameters& call, const ParameterSegment& segment,
                      const float* gradient, float* weight, float* momentum) const = 0;

  bool AllFinite(const float* gradient) const {
    for (const ParameterSegment& segment : segments_) {
      for (std::size_t i = segment.begin; i < segment.begin + segment.count; ++i) {
        if (!std::isfinite(gradient[i])) return false;
      }
    }
    return true;
  }

  std::vector<ParameterSegment> segments_;
};

class ReferenceSgd final : public ReferenceOptimizer {
 public:
  using ReferenceOptimizer::ReferenceOptimizer;

 private:
  void Update(const UpdateParameters& call, const ParameterSegment& segment, const float* gradient,
              float* weight, float* momentum) const override {
    const double decay = segment.decay ? call.weight_decay : 0;
    for (std::size_t i = segment.begin; i < segment.begin + segment.count; ++i) {
      const double g = double{call.gradient_scale} * gradient[i] + decay * weight[i];
      const double v = double{call.momentum_factor} * momentum[i] + g;
      momentum[i] = static_cast<float>(v);
      weight[i] = static_cast<float>(weight[i] - call.learning_rate * v);
    }
  }
};

class ReferenceLars final : public ReferenceOptimizer {
 public:
  using ReferenceOptimizer::ReferenceOptimizer;

 private:
  void Update(const UpdateParameters& call, const ParameterSegment& segment, const float* gradient,
              float* weight, float* momentum) const override {
    const double decay = segment.decay ? call.weight_decay : 0;
    const double rate = call.learning_rate * Ratio(call, segment, gradient, weight);
    for (std::size_t i = segment.begin; i < segment.begin + segment.count; ++i) {
      const double g = double{call.gradient_scale} * gradient[i] + decay * weight[i];
      const double v = double{call.momentum_factor} * momentum[i] + rate * g;
      momentum[i] = static_cast<float>(v);
      weight[i] = static_cast<float>(weight[i] - v);
    }
  }

  static double Ratio(const UpdateParameters& call, const ParameterSegment& segment,
                      const float* gradient, const float* weight) {
    if (!segment.decay) return 1;
    const double of_weight = std::sqrt(Squares(weight, segment));
    const double of_gradient = call.gradient_scale * std::sqrt(Squares(gradient, segment));
    if (of_weight == 0 || of_gradient == 0) return 1;
    return kLarsEta * of_weight / (of_gradient + call.weight_decay * of_weight);
  }
};

}  // namespace

std::unique_ptr<Optimizer> MakeReferenceOptimizer(OptimizerKind kind,
                                                  std::vector<ParameterSegment> segments) {
  if (kind == OptimizerKind::kLars) return std::make_unique<ReferenceLars>(std::move(segments));
  return std::make_unique<ReferenceSgd>(std::move(segments));
}

}  // namespace trainer
