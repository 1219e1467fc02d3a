// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/block_defaults.h"
#include "trainer/backend/block_parts.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

// src -> pool -> features -> linear -> logits -> loss.  The loss gives the gradient of the logits
// in the same call, so Forward keeps that.
class DefaultHead final : public Head {
 public:
  DefaultHead(Backend& backend, const HeadSpec& spec)
      : pool_(backend.MakeGlobalAveragePool(spec.src)),
        linear_(backend.MakeLinear({pool_->dst(), spec.classes})),
        training_loss_(backend.MakeSoftmaxCrossEntropy({linear_->dst(), spec.label_smoothing})),
        inference_loss_(backend.MakeSoftmaxCrossEntropy({linear_->dst(), 0})) {
    const Shape bias{spec.classes};
    parameters_ = {{"fc.weight", linear_->weight().shape, linear_->weight(), Init::kVarianceScaling,
                    true, false},
                   {"fc.bias", bias, RowMajor(bias, DType::kFloat32), Init::kZeros, true, false}};
  }

  const std::vector<ParameterSpec>& parameters() const override { return parameters_; }
  const Tensor& logits() const override { return logits_; }

  void Reserve(const BlockTimes& times, const std::string& name, MemoryPlanner& plan) override {
    const auto keep = [&](const char* what, std::size_t bytes) {
      return plan.Reserve(name + what, bytes, times.forward, times.backward);
    };
    features_id_ = keep(".features", pool_->dst().bytes);
    logits_id_ = keep(".logits", linear_->dst().bytes);
    diff_logits_id_ = keep(".diff_logits", linear_->dst().bytes);
    workspace_id_ = keep(".workspace", linear_->workspace_bytes());
    diff_features_id_ =
        plan.Reserve(name + ".diff_features", pool_->dst().bytes, times.backward, times.backward);
  }

  void Bind(const MemoryPlanner& plan, std::byte* arena,
            std::vector<ParameterBinding> bindings) override {
    DDL_CHECK(bindings.size() == parameters_.size());
    weight_ = bindings[0];
    bias_ = bindings[1];
    features_ = TensorAt(pool_->dst(), plan, features_id_, arena);
    logits_ = TensorAt(linear_->dst(), plan, logits_id_, arena);
    diff_logits_ = TensorAt(linear_->dst(), plan, diff_logits_id_, arena);
    diff_features_ = TensorAt(pool_->dst(), plan, diff_features_id_, arena);
    workspace_ = arena + plan.offset(workspace_id_);
  }

  void Forward(Mode mode, const Tensor& src, const InputBatch& batch, LossSums* sums,
               Stream& stream) override {
    pool_->Forward(src, features_, stream);
    linear_->Forward(features_, weight_.value, bias_.value, logits_, workspace_, stream);
    if (mode == Mode::kInference) {
      inference_loss_->Run(batch.loss, logits_, batch.labels, batch.lambda, {}, sums, stream);
    } else {
      training_loss_->Run(batch.loss, logits_, batch.labels, batch.lambda, diff_logits_, sums,
                          stream);
    }
  }

  void Backward(const Tensor& /*src*/, const Tensor& diff_src, Stream& stream) override {
    linear_->Backward(features_, weight_.value, diff_logits_, diff_features_, weight_.gradient,
                      bias_.gradient, workspace_, stream);
    pool_->Backward(diff_features_, diff_src, stream);
  }

 private:
  std::unique_ptr<GlobalAveragePool> pool_;
  std::unique_ptr<Linear> linear_;
  std::unique_ptr<SoftmaxCrossEntropy> training_loss_;
  std::unique_ptr<SoftmaxCrossEntropy> inference_loss_;
  std::vector<ParameterSpec> parameters_;

  int features_id_ = -1;
  int logits_id_ = -1;
  int diff_logits_id_ = -1;
  int workspace_id_ = -1;
  int diff_features_id_ = -1;
  Tensor features_;
  Tensor logits_;
  Tensor diff_logits_;
  Tensor diff_features_;
  void* workspace_ = nullptr;
  ParameterBinding weight_;
  ParameterBinding bias_;
};

}  // namespace

std::unique_ptr<Head> MakeDefaultHead(Backend& backend, const HeadSpec& spec) {
  return std::make_unique<DefaultHead>(backend, spec);
}

}  // namespace trainer
