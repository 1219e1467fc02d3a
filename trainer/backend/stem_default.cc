// SPDX-License-Identifier: Apache-2.0

#include <utility>

#include "trainer/backend/block_defaults.h"
#include "trainer/backend/block_parts.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

ConvolutionNorm::Spec StemConvolution(const TensorDesc& src, std::int64_t out_channels) {
  ConvolutionNorm::Spec spec;
  spec.convolution = {src, out_channels, /*kernel=*/7, /*stride=*/2, /*padding=*/3};
  spec.relu = true;
  return spec;
}

// input -> ConvolutionNorm -> normed -> pool -> dst
class DefaultStem final : public Stem {
 public:
  DefaultStem(Backend& backend, const StemSpec& spec)
      : input_transform_(backend.MakeInputTransform({spec.batch, 3, spec.height, spec.width})),
        norm_(backend, StemConvolution(input_transform_->dst(), spec.out_channels)),
        pool_(backend.MakeMaxPool({norm_.dst(), /*kernel=*/3, /*stride=*/2, /*padding=*/1})) {
    norm_.AppendParameters("conv1", "bn1", parameters_);
  }

  const std::vector<ParameterSpec>& parameters() const override { return parameters_; }
  const TensorDesc& dst() const override { return pool_->dst(); }

  void Reserve(const BlockTimes& times, const std::string& name, MemoryPlanner& plan) override {
    const auto keep = [&](const char* what, std::size_t bytes) {
      return plan.Reserve(name + what, bytes, times.forward, times.backward);
    };
    input_id_ = keep(".input", input_transform_->dst().bytes);
    norm_.Reserve(times, name, plan);
    normed_id_ = keep(".normed", norm_.dst().bytes);
    pool_saved_id_ = keep(".pool", pool_->saved_bytes());
    const std::size_t workspace_bytes = norm_.workspace_bytes();
    forward_workspace_id_ =
        plan.Reserve(name + ".workspace", workspace_bytes, times.forward, times.forward);
    backward_workspace_id_ =
        plan.Reserve(name + ".workspace", workspace_bytes, times.backward, times.backward);
    diff_bn_id_ =
        plan.Reserve(name + ".diff_normed", norm_.dst().bytes, times.backward, times.backward);
  }

  void Bind(const MemoryPlanner& plan, std::byte* arena,
            std::vector<ParameterBinding> bindings) override {
    DDL_CHECK(bindings.size() == parameters_.size());
    norm_.Bind(plan, arena, bindings);
    input_ = TensorAt(input_transform_->dst(), plan, input_id_, arena);
    normed_ = TensorAt(norm_.dst(), plan, normed_id_, arena);
    diff_bn_ = TensorAt(norm_.dst(), plan, diff_bn_id_, arena);
    pool_saved_ = arena + plan.offset(pool_saved_id_);
    forward_workspace_ = arena + plan.offset(forward_workspace_id_);
    backward_workspace_ = arena + plan.offset(backward_workspace_id_);
  }

  void Forward(Mode mode, const InputBatch& batch, const Tensor& dst, Stream& stream) override {
    input_transform_->Forward(batch.pixels, batch.mirror, batch.lambda, input_, stream);
    norm_.Forward(mode, input_, {}, normed_, forward_workspace_, stream);
    pool_->Forward(normed_, dst, pool_saved_, stream);
  }

  void Backward(Mode mode, const Tensor& /*dst*/, const Tensor& diff_dst, Stream& stream) override {
    pool_->Backward(diff_dst, pool_saved_, diff_bn_, stream);
    norm_.Backward(mode, input_, normed_, {diff_bn_},
                   {.convolved = diff_bn_, .residual = {}, .src = {}}, backward_workspace_, stream);
  }

 private:
  std::unique_ptr<InputTransform> input_transform_;
  ConvolutionNorm norm_;
  std::unique_ptr<MaxPool> pool_;
  std::vector<ParameterSpec> parameters_;

  int input_id_ = -1;
  int normed_id_ = -1;
  int pool_saved_id_ = -1;
  int forward_workspace_id_ = -1;
  int backward_workspace_id_ = -1;
  int diff_bn_id_ = -1;
  Tensor input_;
  Tensor normed_;
  Tensor diff_bn_;
  void* pool_saved_ = nullptr;
  void* forward_workspace_ = nullptr;
  void* backward_workspace_ = nullptr;
};

}  // namespace

std::unique_ptr<Stem> MakeDefaultStem(Backend& backend, const StemSpec& spec) {
  return std::make_unique<DefaultStem>(backend, spec);
}

}  // namespace trainer
