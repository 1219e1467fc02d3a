// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cmath>
#include <vector>

#include "trainer/backend/cpu/cpu_ops.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

using Index = std::int64_t;

class CpuSoftmaxCrossEntropy final : public SoftmaxCrossEntropy {
 public:
  explicit CpuSoftmaxCrossEntropy(const SoftmaxCrossEntropySpec& spec)
      : batch_(spec.logits.shape[0]),
        classes_(spec.logits.shape[1]),
        smoothing_(spec.label_smoothing),
        samples_(static_cast<std::size_t>(batch_)) {}

  // Samples in parallel, their results added up in order.
  void Run(const LossParameters* call_memory, const Tensor& logits, const std::int32_t* labels,
           const float* lambda, const Tensor& diff_logits, LossSums* sums,
           Stream& /*stream*/) override {
    const LossParameters call = *call_memory;
    DDL_CHECK(call.valid >= 0 && call.valid <= batch_);
#pragma omp parallel for schedule(static)
    for (Index n = 0; n < batch_; ++n) {
      float* diff = diff_logits ? diff_logits.As<float>() + n * classes_ : nullptr;
      if (n < call.valid) {
        const double own = lambda == nullptr ? 1 : lambda[n];
        samples_[static_cast<std::size_t>(n)] =
            RunSample(call, logits.As<float>() + n * classes_,
                      {labels[n], labels[batch_ - 1 - n], own}, diff);
      } else if (diff != nullptr) {
        std::fill_n(diff, classes_, 0.0F);
      }
    }
    Sample total;
    for (Index n = 0; n < call.valid; ++n) {
      const Sample& sample = samples_[static_cast<std::size_t>(n)];
      total.loss += sample.loss;
      total.top1 += sample.top1;
      total.top5 += sample.top5;
    }
    sums->loss += static_cast<float>(total.loss);
    sums->top1 += static_cast<float>(total.top1);
    sums->top5 += static_cast<float>(total.top5);
    sums->samples += static_cast<float>(call.valid);
  }

 private:
  struct Sample {
    double loss = 0;
    int top1 = 0;
    int top5 = 0;
  };

  // What a sample is of: its own label with the weight lambda, its partner's with the rest.
  struct Target {
    std::int32_t label, partner;
    double lambda;
  };

  // With log_softmax[k] = logits[k] - log_sum, and targets that add up to 1:
  //   loss = log_sum - sum over k of target[k] * logits[k]
  // written with logits relative to the largest.
  Sample RunSample(const LossParameters& call, const float* logits, const Target& of,
                   float* diff) const {
    const auto& [label, partner, lambda] = of;
    const double peak = *std::max_element(logits, logits + classes_);
    double exponentials = 0;
    double relative = 0;
    Index before = 0;  // classes that rank before the label
    for (Index k = 0; k < classes_; ++k) {
      exponentials += std::exp(logits[k] - peak);
      relative += logits[k] - peak;
      before += logits[k] > logits[label] || (logits[k] == logits[label] && k < label) ? 1 : 0;
    }
    const double log_sum = std::log(exponentials);
    const double uniform = smoothing_ / static_cast<double>(classes_);
    const double hit = (1 - smoothing_) * lambda;
    const double partner_hit = (1 - smoothing_) * (1.0 - lambda);
    const bool counts = !std::isnan(logits[label]);

    Sample sample;
    sample.loss = log_sum - uniform * relative - hit * (logits[label] - peak);
    if (partner_hit != 0) sample.loss -= partner_hit * (logits[partner] - peak);
    sample.top1 = counts && before < 1 ? 1 : 0;
    sample.top5 = counts && before < 5 ? 1 : 0;

    if (diff != nullptr) {  // diff may be logits: nothing reads those after this
      const double scale = call.diff_scale / static_cast<double>(batch_);
      for (Index k = 0; k < classes_; ++k) {
        const double target = uniform + (k == label ? hit : 0) + (k == partner ? partner_hit : 0);
        const double softmax = std::exp(logits[k] - peak) / exponentials;
        diff[k] = static_cast<float>(scale * (softmax - target));
      }
    }
    return sample;
  }

  Index batch_;
  Index classes_;
  double smoothing_;
  std::vector<Sample> samples_;
};

}  // namespace

std::unique_ptr<SoftmaxCrossEntropy> MakeCpuSoftmaxCrossEntropy(
    const SoftmaxCrossEntropySpec& spec) {
  DDL_CHECK(spec.logits.shape.rank() == 2 && spec.logits.layout == Layout::kRowMajor);
  DDL_CHECK(spec.label_smoothing >= 0 && spec.label_smoothing <= 1);
  return std::make_unique<CpuSoftmaxCrossEntropy>(spec);
}

}  // namespace trainer
