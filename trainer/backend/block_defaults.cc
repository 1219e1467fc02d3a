// SPDX-License-Identifier: Apache-2.0
//
// What Backend (backend.h) makes out of the other ops of any back end; gone before that is.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>

#include "trainer/backend/block_parts.h"
#include "trainer/core/error.h"
#include "trainer/core/memory_planner.h"

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
    norm_.Backward(mode, input_, normed_, diff_bn_,
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

std::unique_ptr<Stem> Backend::MakeStem(const StemSpec& spec) {
  return std::make_unique<DefaultStem>(*this, spec);
}

namespace {

// Its gradient is added to that of the shortcut.
ConvolutionNorm::Spec Reduce(const BottleneckSpec& spec) {
  return {{.src = spec.src, .out_channels = spec.mid_channels, .adds_diff_src = true}, false, true};
}

ConvolutionNorm::Spec Spatial(const BottleneckSpec& spec, const TensorDesc& src) {
  return {{.src = src,
           .out_channels = spec.mid_channels,
           .kernel = 3,
           .stride = spec.stride,
           .padding = 1},
          false,
          true};
}

ConvolutionNorm::Spec Expand(const BottleneckSpec& spec, const TensorDesc& src) {
  return {{.src = src, .out_channels = spec.out_channels}, /*add=*/true, /*relu=*/true};
}

ConvolutionNorm::Spec Downsample(const BottleneckSpec& spec) {
  return {{.src = spec.src, .out_channels = spec.out_channels, .stride = spec.stride}};
}

// src -> reduce -> reduced -> spatial -> mixed -> expand (+ shortcut) -> dst
//
// where the shortcut is src, or src -> downsample -> dst, which expand then adds to.
//
// Scratch of backward is a plan of its own, on a clock of its own whose ticks are the parts in the
// order they run: what they do not need at once shares bytes.
class DefaultBottleneck final : public Bottleneck {
 public:
  DefaultBottleneck(Backend& backend, const BottleneckSpec& spec)
      : reduce_(backend, Reduce(spec)),
        spatial_(backend, Spatial(spec, reduce_.dst())),
        expand_(backend, Expand(spec, spatial_.dst())) {
    reduce_.AppendParameters("conv1", "bn1", parameters_);
    spatial_.AppendParameters("conv2", "bn2", parameters_);
    expand_.AppendParameters("conv3", "bn3", parameters_);
    if (spec.has_downsample()) {
      downsample_.emplace(backend, Downsample(spec));
      downsample_->AppendParameters("downsample.0", "downsample.1", parameters_);
    }
    PlanBackward();
  }

  const std::vector<ParameterSpec>& parameters() const override { return parameters_; }
  const TensorDesc& dst() const override { return expand_.dst(); }

  void Reserve(const BlockTimes& times, const std::string& name, MemoryPlanner& plan) override {
    reduce_.Reserve(times, name + ".1", plan);
    spatial_.Reserve(times, name + ".2", plan);
    expand_.Reserve(times, name + ".3", plan);
    if (downsample_) downsample_->Reserve(times, name + ".downsample", plan);
    const auto [forward, backward] = times;
    reduced_id_ = plan.Reserve(name + ".reduced", reduce_.dst().bytes, forward, backward);
    mixed_id_ = plan.Reserve(name + ".mixed", spatial_.dst().bytes, forward, backward);
    const std::size_t workspace =
        std::max({reduce_.workspace_bytes(), spatial_.workspace_bytes(), EndWorkspaceBytes()});
    forward_id_ = plan.Reserve(name + ".scratch", workspace, forward, forward);
    backward_id_ = plan.Reserve(name + ".scratch", scratch_.total_bytes(), backward, backward);
  }

  void Bind(const MemoryPlanner& plan, std::byte* arena,
            std::vector<ParameterBinding> bindings) override {
    DDL_CHECK(bindings.size() == parameters_.size());
    const std::span<const ParameterBinding> all(bindings);
    constexpr std::size_t kCount = kConvolutionNormParameters;
    reduce_.Bind(plan, arena, all.subspan(0, kCount));
    spatial_.Bind(plan, arena, all.subspan(kCount, kCount));
    expand_.Bind(plan, arena, all.subspan(2 * kCount, kCount));
    if (downsample_) downsample_->Bind(plan, arena, all.subspan(3 * kCount));
    reduced_ = TensorAt(reduce_.dst(), plan, reduced_id_, arena);
    mixed_ = TensorAt(spatial_.dst(), plan, mixed_id_, arena);
    workspace_ = arena + plan.offset(forward_id_);
    scratch_base_ = arena + plan.offset(backward_id_);
  }

  void Forward(Mode mode, const Tensor& src, const Tensor& dst, Stream& stream) override {
    reduce_.Forward(mode, src, {}, reduced_, workspace_, stream);
    spatial_.Forward(mode, reduced_, {}, mixed_, workspace_, stream);
    if (downsample_) downsample_->Forward(mode, src, {}, dst, workspace_, stream);
    expand_.Forward(mode, mixed_, downsample_ ? dst : src, dst, workspace_, stream);
  }

  void Backward(Mode mode, const Tensor& src, const Tensor& dst, const Tensor& diff_dst,
                const Tensor& diff_src, Stream& stream) override {
    const auto scratch = [&](int id) { return scratch_base_ + scratch_.offset(id); };
    const Tensor diff_expanded{this->dst(), scratch(diff_expanded_id_)};
    const Tensor diff_mixed{spatial_.dst(), scratch(diff_mixed_id_)};
    const Tensor diff_reduced{reduce_.dst(), scratch(diff_reduced_id_)};
    expand_.Backward(mode, mixed_, dst, diff_dst,
                     {.convolved = diff_expanded,
                      .residual = downsample_ ? diff_dst : diff_src,
                      .src = diff_mixed},
                     scratch(end_id_), stream);
    if (downsample_) {
      downsample_->Backward(mode, src, {}, diff_dst,
                            {.convolved = diff_dst, .residual = {}, .src = diff_src},
                            scratch(end_id_), stream);
    }
    spatial_.Backward(mode, reduced_, mixed_, diff_mixed,
                      {.convolved = diff_mixed, .residual = {}, .src = diff_reduced},
                      scratch(spatial_id_), stream);
    reduce_.Backward(mode, src, reduced_, diff_reduced,
                     {.convolved = diff_reduced, .residual = {}, .src = diff_src},
                     scratch(reduce_id_), stream);
  }

 private:
  std::size_t EndWorkspaceBytes() const {
    return std::max(expand_.workspace_bytes(), downsample_ ? downsample_->workspace_bytes() : 0);
  }

  void PlanBackward() {
    end_id_ = scratch_.Reserve("end", EndWorkspaceBytes(), 0, 0);
    diff_expanded_id_ = scratch_.Reserve("diff_expanded", dst().bytes, 0, 0);
    diff_mixed_id_ = scratch_.Reserve("diff_mixed", spatial_.dst().bytes, 0, 1);
    spatial_id_ = scratch_.Reserve("spatial", spatial_.workspace_bytes(), 1, 1);
    diff_reduced_id_ = scratch_.Reserve("diff_reduced", reduce_.dst().bytes, 1, 2);
    reduce_id_ = scratch_.Reserve("reduce", reduce_.workspace_bytes(), 2, 2);
    scratch_.Solve();
  }

  ConvolutionNorm reduce_;
  ConvolutionNorm spatial_;
  ConvolutionNorm expand_;
  std::optional<ConvolutionNorm> downsample_;
  std::vector<ParameterSpec> parameters_;

  MemoryPlanner scratch_;  // of backward
  int end_id_ = -1;        // workspaces in it, then gradients
  int spatial_id_ = -1;
  int reduce_id_ = -1;
  int diff_expanded_id_ = -1;
  int diff_mixed_id_ = -1;
  int diff_reduced_id_ = -1;

  int reduced_id_ = -1;
  int mixed_id_ = -1;
  int forward_id_ = -1;
  int backward_id_ = -1;
  Tensor reduced_;
  Tensor mixed_;
  void* workspace_ = nullptr;
  std::byte* scratch_base_ = nullptr;
};

}  // namespace

std::unique_ptr<Bottleneck> Backend::MakeBottleneck(const BottleneckSpec& spec) {
  return std::make_unique<DefaultBottleneck>(*this, spec);
}

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

std::unique_ptr<Head> Backend::MakeHead(const HeadSpec& spec) {
  return std::make_unique<DefaultHead>(*this, spec);
}

}  // namespace trainer
