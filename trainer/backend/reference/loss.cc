// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cmath>

#include "trainer/backend/reference/reference_ops.h"

namespace trainer {
namespace {

using Index = std::int64_t;

class ReferenceSoftmaxCrossEntropy final : public SoftmaxCrossEntropy {
 public:
  explicit ReferenceSoftmaxCrossEntropy(const SoftmaxCrossEntropySpec& spec)
      : batch_(spec.logits.shape[0]),
        classes_(spec.logits.shape[1]),
        smoothing_(spec.label_smoothing) {
    CheckRowMajor(spec.logits, 2);
    DDL_CHECK(smoothing_ >= 0 && smoothing_ <= 1);
  }

  void Run(const LossParameters* call_memory, const Tensor& logits, const std::int32_t* labels,
           const float* lambda, const Tensor& diff_logits, LossSums* sums,
           Stream& /*stream*/) override {
    const LossParameters call = *call_memory;
    DDL_CHECK(call.valid >= 0 && call.valid <= batch_);
    double loss = 0;
    int top1 = 0;
    int top5 = 0;
    for (Index n = 0; n < batch_; ++n) {
      float* diff_row = diff_logits ? diff_logits.As<float>() + n * classes_ : nullptr;
      if (n >= call.valid) {
        if (diff_row != nullptr) std::fill_n(diff_row, classes_, 0.0F);
        continue;
      }
      const float* row = logits.As<float>() + n * classes_;
      const Index before = CountBefore(row, labels[n]);  // before diff_row, which may be row
      top1 += before < 1 ? 1 : 0;
      top5 += before < 5 ? 1 : 0;
      const double own = lambda == nullptr ? 1 : lambda[n];
      loss += RunRow(call, row, {labels[n], labels[batch_ - 1 - n], own}, diff_row);
    }
    sums->loss += static_cast<float>(loss);
    sums->top1 += static_cast<float>(top1);
    sums->top5 += static_cast<float>(top5);
    sums->samples += static_cast<float>(call.valid);
  }

 private:
  // What a sample is of: its own label with the weight lambda, its partner's with the rest.
  struct Target {
    std::int32_t label, partner;
    double lambda;
  };

  // Returns the loss of one sample.
  double RunRow(const LossParameters& call, const float* row, const Target& of,
                float* diff_row) const {
    const double peak = *std::max_element(row, row + classes_);
    double sum = 0;
    for (Index k = 0; k < classes_; ++k) sum += std::exp(row[k] - peak);

    const auto batch = static_cast<double>(batch_);
    const auto classes = static_cast<double>(classes_);
    double loss = 0;
    for (Index k = 0; k < classes_; ++k) {
      const double log_softmax = row[k] - peak - std::log(sum);
      const double hit =
          (k == of.label ? of.lambda : 0.0) + (k == of.partner ? 1.0 - of.lambda : 0.0);
      const double target = (1 - smoothing_) * hit + smoothing_ / classes;
      loss -= target * log_softmax;
      if (diff_row != nullptr) {
        diff_row[k] =
            static_cast<float>(call.diff_scale / batch * (std::exp(log_softmax) - target));
      }
    }
    return loss;
  }

  // How many classes rank before the label; all of them if its logit is NaN.
  Index CountBefore(const float* row, std::int32_t label) const {
    if (std::isnan(row[label])) return classes_ + 5;
    Index before = 0;
    for (Index k = 0; k < classes_; ++k) {
      if (row[k] > row[label] || (row[k] == row[label] && k < label)) ++before;
    }
    return before;
  }

  Index batch_;
  Index classes_;
  double smoothing_;
};

}  // namespace

std::unique_ptr<SoftmaxCrossEntropy> MakeReferenceSoftmaxCrossEntropy(
    const SoftmaxCrossEntropySpec& spec) {
  return std::make_unique<ReferenceSoftmaxCrossEntropy>(spec);
}

}  // namespace trainer
