// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cmath>

#include "trainer/backend/reference/reference_ops.h"

namespace trainer {
namespace {

using Index = std::int64_t;

struct Statistics {
  double mean = 0;
  double variance = 0;
};

class ReferenceBatchNorm final : public BatchNorm {
 public:
  explicit ReferenceBatchNorm(const BatchNormSpec& spec) : spec_(spec) {
    CheckRowMajor(spec.src, 4);
    channels_ = spec.src.shape[1];
    const Index count = spec.src.shape.elements() / channels_;
    count_ = static_cast<double>(count);
  }

  const TensorDesc& dst() const override { return spec_.src; }
  std::size_t saved_bytes() const override {
    return static_cast<std::size_t>(channels_) * sizeof(Statistics);
  }
  std::size_t workspace_bytes() const override { return 0; }

  void Forward(Mode mode, const Tensor& src_tensor, const Tensor& residual_tensor,
               const BatchNormParameters& parameters, const Tensor& dst_tensor, void* saved,
               void* /*workspace*/, Stream& /*stream*/) override {
    const TensorView src(src_tensor);
    const TensorView residual(residual_tensor);
    const TensorView dst(dst_tensor);
    for (Index c = 0; c < channels_; ++c) {
      Statistics statistics = Running(parameters, c);
      if (mode == Mode::kTraining) {
        statistics = OfBatch(src, c);
        UpdateRunning(statistics, parameters, c);
      }
      if (mode != Mode::kInference) static_cast<Statistics*>(saved)[c] = statistics;
      const double deviation = std::sqrt(statistics.variance + spec_.epsilon);
      const double scale = parameters.scale.As<float>()[c];
      const double shift = parameters.shift.As<float>()[c];
      ForEachValue([&](Index n, Index h, Index w) {
        double y = (src(n, c, h, w) - statistics.mean) / deviation * scale + shift;
        if (spec_.add) y += residual(n, c, h, w);
        if (spec_.relu) y = std::max(y, 0.0);
        dst(n, c, h, w) = static_cast<float>(y);
      });
    }
  }

  // With z = (src - mean) / deviation, y = z * scale + shift, and dy the gradient behind the ReLU:
  //   diff_scale = sum dy * z;  diff_shift = sum dy
  //   diff_src = scale / deviation * (dy - mean of dy - z * mean of dy * z)
  // where the two means are there only if mean and deviation depend on src: in kTraining.
  void Backward(Mode mode, const Tensor& src_tensor, const Tensor& dst_tensor,
                const Tensor& diff_dst_tensor, const BatchNormParameters& parameters,
                const void* saved, const Tensor& diff_src_tensor,
                const Tensor& diff_residual_tensor, const Tensor& diff_scale,
                const Tensor& diff_shift, void* /*workspace*/, Stream& /*stream*/) override {
    const TensorView src(src_tensor);
    const TensorView dst(dst_tensor);
    const TensorView diff_dst(diff_dst_tensor);
    const TensorView diff_src(diff_src_tensor);
    const TensorView diff_residual(diff_residual_tensor);
    for (Index c = 0; c < channels_; ++c) {
      const Statistics statistics = static_cast<const Statistics*>(saved)[c];
      const double deviation = std::sqrt(statistics.variance + spec_.epsilon);
      const auto z = [&](Index n, Index h, Index w) {
        return (src(n, c, h, w) - statistics.mean) / deviation;
      };
      const auto dy = [&](Index n, Index h, Index w) {
        return spec_.relu && !(dst(n, c, h, w) > 0) ? 0.0 : double{diff_dst(n, c, h, w)};
      };
      double sum_dy = 0;
      double sum_dy_z = 0;
      ForEachValue([&](Index n, Index h, Index w) {
        sum_dy += dy(n, h, w);
        sum_dy_z += dy(n, h, w) * z(n, h, w);
      });
      diff_scale.As<float>()[c] = static_cast<float>(sum_dy_z);
      diff_shift.As<float>()[c] = static_cast<float>(sum_dy);
      const double mean_dy = mode == Mode::kTraining ? sum_dy / count_ : 0;
      const double mean_dy_z = mode == Mode::kTraining ? sum_dy_z / count_ : 0;
      const double factor = parameters.scale.As<float>()[c] / deviation;
      ForEachValue([&](Index n, Index h, Index w) {
        const double gradient = dy(n, h, w);  // before an output that may be diff_dst is written
        if (spec_.add) diff_residual(n, c, h, w) = static_cast<float>(gradient);
        diff_src(n, c, h, w) =
            static_cast<float>(factor * (gradient - mean_dy - z(n, h, w) * mean_dy_z));
      });
    }
  }

 private:
  // Calls visit(n, h, w) for every value of a channel.
  template <typename Visit>
  void ForEachValue(const Visit& visit) const {
    const Shape& shape = spec_.src.shape;
    ForEach({shape[0], 1, shape[2], shape[3]},
            [&](Index n, Index, Index h, Index w) { visit(n, h, w); });
  }

  Statistics OfBatch(const TensorView& src, Index c) const {
    Statistics statistics;
    ForEachValue([&](Index n, Index h, Index w) { statistics.mean += src(n, c, h, w); });
    statistics.mean /= count_;
    ForEachValue([&](Index n, Index h, Index w) {
      const double distance = src(n, c, h, w) - statistics.mean;
      statistics.variance += distance * distance;
    });
    statistics.variance /= count_;
    return statistics;
  }

  static Statistics Running(const BatchNormParameters& parameters, Index c) {
    return {parameters.running_mean.As<float>()[c], parameters.running_variance.As<float>()[c]};
  }

  void UpdateRunning(const Statistics& batch, const BatchNormParameters& parameters,
                     Index c) const {
    const double unbiased = batch.variance * count_ / std::max(count_ - 1, 1.0);
    const auto mix = [&](float& running, double value) {
      running = static_cast<float>(spec_.kept * running + (1.0 - spec_.kept) * value);
    };
    mix(parameters.running_mean.As<float>()[c], batch.mean);
    mix(parameters.running_variance.As<float>()[c], unbiased);
  }

  BatchNormSpec spec_;
  Index channels_;
  double count_;  // values of one channel: N * H * W
};

}  // namespace

std::unique_ptr<BatchNorm> MakeReferenceBatchNorm(const BatchNormSpec& spec) {
  return std::make_unique<ReferenceBatchNorm>(spec);
}

}  // namespace trainer
