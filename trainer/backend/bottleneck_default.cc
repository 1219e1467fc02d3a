// SPDX-License-Identifier: Apache-2.0

#include <optional>
#include <utility>

#include "trainer/backend/block_defaults.h"
#include "trainer/backend/block_parts.h"
#include "trainer/core/error.h"

namespace trainer {
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
           .padding = 1,
           .follows_norm = true},
          false,
          true};
}

ConvolutionSpec Expand(const BottleneckSpec& spec, const TensorDesc& src) {
  return {.src = src, .out_channels = spec.out_channels, .follows_norm = true};
}

ConvolutionSpec Downsample(const BottleneckSpec& spec) {
  return {spec.src, spec.out_channels, /*kernel=*/1, spec.stride, /*padding=*/0};
}

// src -> reduce -> reduced -> spatial -> mixed -> expand (+ src) -> dst
//
// or, where the shortcut has a convolution: mixed, src -> expand + downsample -> dst
//
// Scratch of one direction is a plan of its own, on a clock of its own whose ticks are the three
// parts in the order they run: what the parts do not need at once shares bytes.
class DefaultBottleneck final : public Bottleneck {
 public:
  DefaultBottleneck(Backend& backend, const BottleneckSpec& spec)
      : reduce_(backend, Reduce(spec)), spatial_(backend, Spatial(spec, reduce_.dst())) {
    const ConvolutionSpec expand = Expand(spec, spatial_.dst());
    reduce_.AppendParameters("conv1", "bn1", parameters_);
    spatial_.AppendParameters("conv2", "bn2", parameters_);
    if (spec.has_downsample()) {
      joined_.emplace(backend, expand, Downsample(spec));
      joined_->first().AppendParameters("conv3", "bn3", parameters_);
      joined_->second().AppendParameters("downsample.0", "downsample.1", parameters_);
    } else {
      expand_.emplace(backend, ConvolutionNorm::Spec{expand, /*add=*/true, /*relu=*/true});
      expand_->AppendParameters("conv3", "bn3", parameters_);
    }
    PlanForward();
    PlanBackward();
  }

  const std::vector<ParameterSpec>& parameters() const override { return parameters_; }
  const TensorDesc& dst() const override { return joined_ ? joined_->dst() : expand_->dst(); }

  void Reserve(const BlockTimes& times, const std::string& name, MemoryPlanner& plan) override {
    reduce_.Reserve(times, name + ".1", plan);
    spatial_.Reserve(times, name + ".2", plan);
    if (expand_) expand_->Reserve(times, name + ".3", plan);
    if (joined_) joined_->Reserve(times, name + ".3", name + ".downsample", plan);
    const auto [forward, backward] = times;
    reduced_id_ = plan.Reserve(name + ".reduced", reduce_.dst().bytes, forward, backward);
    mixed_id_ = plan.Reserve(name + ".mixed", spatial_.dst().bytes, forward, backward);
    forward_id_ = plan.Reserve(name + ".scratch", forward_.plan.total_bytes(), forward, forward);
    backward_id_ =
        plan.Reserve(name + ".scratch", backward_.plan.total_bytes(), backward, backward);
  }

  void Bind(const MemoryPlanner& plan, std::byte* arena,
            std::vector<ParameterBinding> bindings) override {
    DDL_CHECK(bindings.size() == parameters_.size());
    const std::span<const ParameterBinding> all(bindings);
    const std::size_t count = ConvolutionNorm::kParameters;
    reduce_.Bind(plan, arena, all.subspan(0, count));
    spatial_.Bind(plan, arena, all.subspan(count, count));
    if (expand_) expand_->Bind(plan, arena, all.subspan(2 * count));
    if (joined_) joined_->Bind(plan, arena, all.subspan(2 * count));
    reduced_ = TensorAt(reduce_.dst(), plan, reduced_id_, arena);
    mixed_ = TensorAt(spatial_.dst(), plan, mixed_id_, arena);
    forward_.base = arena + plan.offset(forward_id_);
    backward_.base = arena + plan.offset(backward_id_);
  }

  void Forward(Mode mode, const Tensor& src, const Tensor& dst, Stream& stream) override {
    const Scratch& s = forward_;
    reduce_.Forward(mode, src, {}, reduced_, s.At(s.reduce), stream);
    spatial_.Forward(mode, reduced_, {}, mixed_, s.At(s.spatial), stream);
    if (expand_) expand_->Forward(mode, mixed_, src, dst, s.At(s.end), stream);
    if (joined_) joined_->Forward(mode, mixed_, src, dst, s.At(s.end), stream);
  }

  void Backward(Mode mode, const Tensor& src, const Tensor& dst, const Tensor& diff_dst,
                const Tensor& diff_src, Stream& stream) override {
    const Scratch& s = backward_;
    const Tensor diff_expanded{this->dst(), s.At(diff_expanded_id_)};
    const Tensor diff_mixed{spatial_.dst(), s.At(diff_mixed_id_)};
    const Tensor diff_reduced{reduce_.dst(), s.At(diff_reduced_id_)};
    const KeptConvolution::SrcGradient to_mixed{diff_mixed, spatial_.norm_input()};
    if (expand_) {
      expand_->Backward(mode, mixed_, dst, {diff_dst},
                        {.convolved = diff_expanded, .residual = diff_src, .src = to_mixed},
                        s.At(s.end), stream);
    } else {
      joined_->Backward(mode, mixed_, src, dst, diff_dst,
                        {.convolved = diff_expanded, .src = to_mixed},
                        {.convolved = diff_dst, .src = {diff_src, {}}}, s.At(s.end), stream);
    }
    const TensorWithBnStats of_mixed =
        expand_ ? expand_->diff_src(diff_mixed) : joined_->first().diff_src(diff_mixed);
    spatial_.Backward(
        mode, reduced_, mixed_, of_mixed,
        {.convolved = diff_mixed, .residual = {}, .src = {diff_reduced, reduce_.norm_input()}},
        s.At(s.spatial), stream);
    reduce_.Backward(mode, src, reduced_, spatial_.diff_src(diff_reduced),
                     {.convolved = diff_reduced, .residual = {}, .src = {diff_src, {}}},
                     s.At(s.reduce), stream);
  }

 private:
  struct Scratch {
    MemoryPlanner plan;
    std::byte* base = nullptr;
    int reduce = -1, spatial = -1, end = -1;  // workspaces

    std::byte* At(int id) const { return base + plan.offset(id); }
  };

  std::size_t EndWorkspaceBytes() const {
    return joined_ ? joined_->workspace_bytes() : expand_->workspace_bytes();
  }

  void PlanForward() {
    Scratch& s = forward_;
    s.reduce = s.plan.Reserve("reduce", reduce_.workspace_bytes(), 0, 0);
    s.spatial = s.plan.Reserve("spatial", spatial_.workspace_bytes(), 1, 1);
    s.end = s.plan.Reserve("end", EndWorkspaceBytes(), 2, 2);
    s.plan.Solve();
  }

  void PlanBackward() {
    Scratch& s = backward_;
    s.end = s.plan.Reserve("end", EndWorkspaceBytes(), 0, 0);
    diff_expanded_id_ = s.plan.Reserve("diff_expanded", dst().bytes, 0, 0);
    diff_mixed_id_ = s.plan.Reserve("diff_mixed", spatial_.dst().bytes, 0, 1);
    s.spatial = s.plan.Reserve("spatial", spatial_.workspace_bytes(), 1, 1);
    diff_reduced_id_ = s.plan.Reserve("diff_reduced", reduce_.dst().bytes, 1, 2);
    s.reduce = s.plan.Reserve("reduce", reduce_.workspace_bytes(), 2, 2);
    s.plan.Solve();
  }

  ConvolutionNorm reduce_;
  ConvolutionNorm spatial_;
  std::optional<ConvolutionNorm> expand_;      // the end where the shortcut is src,
  std::optional<ConvolutionDualNorm> joined_;  // or where it has a convolution
  std::vector<ParameterSpec> parameters_;

  Scratch forward_;
  Scratch backward_;
  int diff_expanded_id_ = -1;  // in backward_, and so on
  int diff_mixed_id_ = -1;
  int diff_reduced_id_ = -1;

  int reduced_id_ = -1;
  int mixed_id_ = -1;
  int forward_id_ = -1;
  int backward_id_ = -1;
  Tensor reduced_;
  Tensor mixed_;
};

}  // namespace

std::unique_ptr<Bottleneck> MakeDefaultBottleneck(Backend& backend, const BottleneckSpec& spec) {
  return std::make_unique<DefaultBottleneck>(backend, spec);
}

}  // namespace trainer
