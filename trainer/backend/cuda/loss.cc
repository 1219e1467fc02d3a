// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/cuda_ops.h"
#include "trainer/backend/cuda/loss_kernels.h"
#include "trainer/backend/cuda/runtime/runtime.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

class CudaSoftmaxCrossEntropy final : public SoftmaxCrossEntropy {
 public:
  CudaSoftmaxCrossEntropy(Backend& backend, const SoftmaxCrossEntropySpec& spec)
      : of_samples_(backend.AllocateDevice(static_cast<std::size_t>(spec.logits.shape[0]) *
                                           sizeof(LossSums))) {
    DDL_CHECK(spec.logits.layout == Layout::kRowMajor && spec.logits.dtype == DType::kFloat32);
    call_.samples = spec.logits.shape[0];
    call_.classes = spec.logits.shape[1];
    call_.smoothing = spec.label_smoothing;
  }

  void Run(const LossParameters* call, const Tensor& logits, const std::int32_t* labels,
           const float* lambda, const Tensor& diff_logits, LossSums* sums,
           Stream& stream) override {
    LossKernelCall full = call_;
    full.parameters = call;
    full.logits = logits.As<float>();
    full.labels = labels;
    full.lambda = lambda;
    full.diff_logits = diff_logits.As<float>();
    RunLoss(full, reinterpret_cast<LossSums*>(of_samples_.data()), sums, HandleOf(stream));
  }

 private:
  Buffer of_samples_;
  LossKernelCall call_;
};

}  // namespace

std::unique_ptr<SoftmaxCrossEntropy> MakeCudaSoftmaxCrossEntropy(
    Backend& backend, const SoftmaxCrossEntropySpec& spec) {
  return std::make_unique<CudaSoftmaxCrossEntropy>(backend, spec);
}

}  // namespace trainer
