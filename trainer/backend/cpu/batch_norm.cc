// SPDX-License-Identifier: Apache-2.0
//
// Our own loops, because the library has none that normalise, add and apply the ReLU in one pass.
// Channel blocks are done a few at a time, so that the second pass over them still finds them in
// the cache.  Sums are taken per image and then over the images in order: the bits do not depend on
// the number of threads.

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "trainer/backend/cpu/cpu_ops.h"
#include "trainer/backend/cpu/loops.h"
#include "trainer/backend/cpu/onednn.h"

namespace trainer {
namespace {

using detail::ChunkGradient;
using detail::ReluMask;
using Index = std::int64_t;

// Bytes of one pass that one core's cache is taken to hold until the next pass.
constexpr Index kCacheBytes = Index{1} << 20;

class CpuBatchNorm final : public BatchNorm {
 public:
  explicit CpuBatchNorm(const BatchNormSpec& spec)
      : spec_(spec),
        layout_(ChannelBlocksOf(spec.src)),
        chunk_{layout_.rows, layout_.block},
        count_(static_cast<double>(layout_.batch * layout_.rows)) {}

  const TensorDesc& dst() const override { return spec_.src; }
  std::size_t saved_bytes() const override { return 2 * ChannelBytes(); }
  std::size_t workspace_bytes() const override {
    return static_cast<std::size_t>(2 * layout_.batch + 5) * ChannelBytes();
  }

  void Forward(Mode mode, const Tensor& src, const Tensor& residual,
               const BatchNormParameters& parameters, const Tensor& dst, void* saved,
               void* workspace, Stream& /*stream*/) override;
  void Backward(Mode mode, const Tensor& src, const Tensor& dst, const Tensor& diff_dst,
                const BatchNormParameters& parameters, const void* saved, const Tensor& diff_src,
                const Tensor& diff_residual, const Tensor& diff_scale, const Tensor& diff_shift,
                void* workspace, Stream& stream) override;

 private:
  // Arrays of padded_channels() floats in the workspace.
  struct Scratch {
    float* mean;
    float* factor;  // scale / deviation
    float* shift;
    float* offset;  // backward: mean of dy
    float* slope;   // backward: mean of dy * (src - mean), divided by the variance
    float* first;   // one array for each image: means; or sums of dy
    float* second;  // likewise: squared distances; or sums of dy * (src - mean)
  };
  // What Forward leaves for Backward.
  struct Statistics {
    float* mean;
    float* inverse_deviation;
  };

  std::size_t ChannelBytes() const {
    return static_cast<std::size_t>(layout_.padded_channels()) * sizeof(float);
  }
  Scratch ScratchIn(void* workspace) const {
    auto* at = static_cast<float*>(workspace);
    const Index stride = layout_.padded_channels();
    return {at,
            at + stride,
            at + 2 * stride,
            at + 3 * stride,
            at + 4 * stride,
            at + 5 * stride,
            at + (5 + layout_.batch) * stride};
  }
  Statistics StatisticsIn(void* saved) const {
    auto* at = static_cast<float*>(saved);
    return {at, at + layout_.padded_channels()};
  }

  detail::ChunkNorm NormOf(const Scratch& scratch, Index block) const {
    const Index c = block * layout_.block;
    return {scratch.mean + c, scratch.factor + c, scratch.shift + c};
  }

  // Blocks done together when a pass touches `tensors` tensors.
  Index GroupSize(Index tensors) const {
    const Index block_bytes =
        tensors * layout_.batch * layout_.rows * layout_.block * static_cast<Index>(sizeof(float));
    return std::max<Index>(1, omp_get_max_threads() * kCacheBytes / block_bytes);
  }

  void FinishStatistics(Index block, bool of_batch, const BatchNormParameters& parameters,
                        const Scratch& scratch, void* saved) const;
  void BatchMoments(Index c, const Scratch& scratch, double& mean, double& variance) const;
  void UpdateRunning(Index c, const BatchNormParameters& parameters, double mean,
                     double variance) const;
  void FinishSums(Index block, Mode mode, const Statistics& statistics, const Tensor& diff_scale,
                  const Tensor& diff_shift, const Scratch& scratch) const;

  const detail::Loops& loops_ = detail::BestLoops();
  BatchNormSpec spec_;
  ChannelBlocks layout_;
  detail::ChunkShape chunk_;
  double count_;  // values of one channel: N * H * W
};

void CpuBatchNorm::Forward(Mode mode, const Tensor& src, const Tensor& residual,
                           const BatchNormParameters& parameters, const Tensor& dst, void* saved,
                           void* workspace, Stream& /*stream*/) {
  const Scratch scratch = ScratchIn(workspace);
  const bool of_batch = mode == Mode::kTraining;
  void* const kept = mode == Mode::kInference ? nullptr : saved;
  const Index group = GroupSize(1);
#pragma omp parallel
  for (Index first = 0; first < layout_.blocks; first += group) {
    const Index end = std::min(first + group, layout_.blocks);
    if (of_batch) {
#pragma omp for collapse(2) schedule(static)
      for (Index b = first; b < end; ++b) {
        for (Index n = 0; n < layout_.batch; ++n) {
          const Index sums = n * layout_.padded_channels() + b * layout_.block;
          loops_.moments(chunk_, src.As<float>() + layout_.offset(n, b), scratch.first + sums,
                         scratch.second + sums);
        }
      }
    }
#pragma omp for schedule(static)
    for (Index b = first; b < end; ++b) {
      FinishStatistics(b, of_batch, parameters, scratch, kept);
    }
#pragma omp for collapse(2) schedule(static)
    for (Index b = first; b < end; ++b) {
      for (Index n = 0; n < layout_.batch; ++n) {
        const Index at = layout_.offset(n, b);
        loops_.normalise(chunk_, NormOf(scratch, b), src.As<float>() + at,
                         spec_.add ? residual.As<float>() + at : nullptr, spec_.relu,
                         dst.As<float>() + at);
      }
    }
  }
}

// With dy the gradient behind the ReLU, and z = (src - mean) / deviation:
//   diff_src = scale / deviation * (dy - mean of dy - z * mean of dy * z)
// where the two means are there only if mean and deviation depend on src: in kTraining.
void CpuBatchNorm::Backward(Mode mode, const Tensor& src, const Tensor& dst, const Tensor& diff_dst,
                            const BatchNormParameters& parameters, const void* saved,
                            const Tensor& diff_src, const Tensor& diff_residual,
                            const Tensor& diff_scale, const Tensor& diff_shift, void* workspace,
                            Stream& /*stream*/) {
  const Scratch scratch = ScratchIn(workspace);
  const Statistics statistics = StatisticsIn(const_cast<void*>(saved));
  const ReluMask relu_mask = !spec_.relu ? ReluMask::kOpen
                             : spec_.add ? ReluMask::kDst
                                         : ReluMask::kSrc;
  const auto gradient_at = [&](Index n, Index b, const Tensor& diff) {
    const Index at = layout_.offset(n, b);
    const float* passed = relu_mask == ReluMask::kDst ? dst.As<float>() + at : nullptr;
    return ChunkGradient{src.As<float>() + at, passed, diff.As<float>() + at, NormOf(scratch, b)};
  };
  const Index group = GroupSize(2);
#pragma omp parallel
  for (Index first = 0; first < layout_.blocks; first += group) {
    const Index end = std::min(first + group, layout_.blocks);
#pragma omp for schedule(static)
    for (Index b = first; b < end; ++b) {
      for (Index c = b * layout_.block; c < (b + 1) * layout_.block; ++c) {
        const bool real = c < layout_.channels;
        scratch.mean[c] = statistics.mean[c];
        scratch.factor[c] =
            real ? parameters.scale.As<float>()[c] * statistics.inverse_deviation[c] : 0;
        scratch.shift[c] = real ? parameters.shift.As<float>()[c] : 0;
      }
    }
#pragma omp for collapse(2) schedule(static)
    for (Index b = first; b < end; ++b) {
      for (Index n = 0; n < layout_.batch; ++n) {
        const Index sums = n * layout_.padded_channels() + b * layout_.block;
        loops_.gradient_sums(chunk_, relu_mask, gradient_at(n, b, diff_dst),
                             spec_.add ? diff_residual.As<float>() + layout_.offset(n, b) : nullptr,
                             scratch.first + sums, scratch.second + sums);
      }
    }
#pragma omp for schedule(static)
    for (Index b = first; b < end; ++b) {
      FinishSums(b, mode, statistics, diff_scale, diff_shift, scratch);
    }
    // With a residual the first pass has left the gated gradient there.
#pragma omp for collapse(2) schedule(static)
    for (Index b = first; b < end; ++b) {
      for (Index n = 0; n < layout_.batch; ++n) {
        const Index c = b * layout_.block;
        loops_.gradient_apply(chunk_, spec_.add ? ReluMask::kOpen : relu_mask,
                              gradient_at(n, b, spec_.add ? diff_residual : diff_dst),
                              scratch.offset + c, scratch.slope + c,
                              diff_src.As<float>() + layout_.offset(n, b));
      }
    }
  }
}

// Padding channels get zeros everywhere, so that zeros stay zeros.
void CpuBatchNorm::FinishStatistics(Index block, bool of_batch,
                                    const BatchNormParameters& parameters, const Scratch& scratch,
                                    void* saved) const {
  for (Index c = block * layout_.block; c < (block + 1) * layout_.block; ++c) {
    double mean = 0;
    double inverse_deviation = 0;
    scratch.factor[c] = 0;
    scratch.shift[c] = 0;
    if (c < layout_.channels) {
      double variance = 0;
      if (of_batch) {
        BatchMoments(c, scratch, mean, variance);
        UpdateRunning(c, parameters, mean, variance);
      } else {
        mean = parameters.running_mean.As<float>()[c];
        variance = parameters.running_variance.As<float>()[c];
      }
      inverse_deviation = 1 / std::sqrt(variance + spec_.epsilon);
      scratch.factor[c] = static_cast<float>(parameters.scale.As<float>()[c] * inverse_deviation);
      scratch.shift[c] = parameters.shift.As<float>()[c];
    }
    scratch.mean[c] = static_cast<float>(mean);
    if (saved != nullptr) {
      const Statistics statistics = StatisticsIn(saved);
      statistics.mean[c] = static_cast<float>(mean);
      statistics.inverse_deviation[c] = static_cast<float>(inverse_deviation);
    }
  }
}

// Each image's squared distances are from its own mean; moving to the common mean adds the distance
// between the two (Chan, Golub, LeVeque: "Updating formulae and a pairwise algorithm for computing
// sample variances", 1979).
void CpuBatchNorm::BatchMoments(Index c, const Scratch& scratch, double& mean,
                                double& variance) const {
  const Index stride = layout_.padded_channels();
  mean = 0;
  for (Index n = 0; n < layout_.batch; ++n) mean += scratch.first[n * stride + c];
  mean /= static_cast<double>(layout_.batch);
  double distances = 0;
  for (Index n = 0; n < layout_.batch; ++n) {
    const double shift = scratch.first[n * stride + c] - mean;
    distances += scratch.second[n * stride + c] + shift * shift * static_cast<double>(layout_.rows);
  }
  variance = distances / count_;
}

void CpuBatchNorm::UpdateRunning(Index c, const BatchNormParameters& parameters, double mean,
                                 double variance) const {
  const double unbiased = variance * count_ / std::max(count_ - 1, 1.0);
  const auto mix = [this](float& running, double value) {
    running = static_cast<float>(spec_.kept * running + (1.0 - spec_.kept) * value);
  };
  mix(parameters.running_mean.As<float>()[c], mean);
  mix(parameters.running_variance.As<float>()[c], unbiased);
}

void CpuBatchNorm::FinishSums(Index block, Mode mode, const Statistics& statistics,
                              const Tensor& diff_scale, const Tensor& diff_shift,
                              const Scratch& scratch) const {
  const Index stride = layout_.padded_channels();
  const double share = mode == Mode::kTraining ? 1 / count_ : 0;
  for (Index c = block * layout_.block; c < (block + 1) * layout_.block; ++c) {
    double sum = 0;
    double dot = 0;
    for (Index n = 0; n < layout_.batch; ++n) {
      sum += scratch.first[n * stride + c];
      dot += scratch.second[n * stride + c];
    }
    const double inverse = statistics.inverse_deviation[c];
    scratch.offset[c] = static_cast<float>(share * sum);
    scratch.slope[c] = static_cast<float>(share * dot * inverse * inverse);
    if (c < layout_.channels) {
      diff_scale.As<float>()[c] = static_cast<float>(dot * inverse);
      diff_shift.As<float>()[c] = static_cast<float>(sum);
    }
  }
}

}  // namespace

std::unique_ptr<BatchNorm> MakeCpuBatchNorm(const BatchNormSpec& spec) {
  return std::make_unique<CpuBatchNorm>(spec);
}

}  // namespace trainer
