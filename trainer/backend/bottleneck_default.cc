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
  return {{src, spec.mid_channels, /*kernel=*/3, spec.stride, /*padding=*/1}, false, true};
}

ConvolutionNorm::Spec Expand(const BottleneckSpec& spec, const TensorDesc& src) {
  return {{src, spec.out_channels, /*kernel=*/1, /*stride=*/1, /*padding=*/0}, true, true};
}

ConvolutionNorm::Spec Downsample(const BottleneckSpec& spec) {
  return {{spec.src, spec.out_channels, /*kernel=*/1, spec.stride, /*padding=*/0}, false, false};
}

// src -> reduce -> reduced -> spatial -> mixed -> expand (+ shortcut) -> dst
// src -> downsample -> shortcut, where there is one
//
// Scratch of one direction is a plan of its own, on a clock of its own whose ticks are the four
// parts in the order they run: what the parts do not need at once shares bytes.
class DefaultBottleneck final : public Bottleneck {
 public:
  DefaultBottleneck(Backend& backend, const BottleneckSpec& spec)
      : reduce_(backend, Reduce(spec)),
        spatial_(backend, Spatial(spec, reduce_.dst())),
        expand_(backend, Expand(spec, spatial_.dst())) {
    if (spec.has_downsample()) downsample_.emplace(backend, Downsample(spec));
    reduce_.AppendParameters("conv1", "bn1", parameters_);
    spatial_.AppendParameters("conv2", "bn2", parameters_);
    expand_.AppendParameters("conv3", "bn3", parameters_);
    if (downsample_) downsample_->AppendParameters("downsample.0", "downsample.1", parameters_);
    PlanForward();
    PlanBackward();
  }

  const std::vector<ParameterSpec>& parameters() const override { return parameters_; }
  const TensorDesc& dst() const override { return expand_.dst(); }

  void Reserve(const BlockTimes& times, const std::string& name, MemoryPlan& plan) override {
    reduce_.Reserve(times, name + ".1", plan);
    spatial_.Reserve(times, name + ".2", plan);
    expand_.Reserve(times, name + ".3", plan);
    if (downsample_) downsample_->Reserve(times, name + ".downsample", plan);
    const auto [forward, backward] = times;
    reduced_id_ = plan.Reserve(name + ".reduced", reduce_.dst().bytes, forward, backward);
    mixed_id_ = plan.Reserve(name + ".mixed", spatial_.dst().bytes, forward, backward);
    forward_id_ = plan.Reserve(name + ".scratch", forward_.plan.total_bytes(), forward, forward);
    backward_id_ =
        plan.Reserve(name + ".scratch", backward_.plan.total_bytes(), backward, backward);
  }

  void Bind(const MemoryPlan& plan, std::byte* arena,
            std::vector<ParameterBinding> bindings) override {
    DDL_CHECK(bindings.size() == parameters_.size());
    const std::span<const ParameterBinding> all(bindings);
    const std::size_t count = ConvolutionNorm::kParameters;
    reduce_.Bind(plan, arena, all.subspan(0, count));
    spatial_.Bind(plan, arena, all.subspan(count, count));
    expand_.Bind(plan, arena, all.subspan(2 * count, count));
    if (downsample_) downsample_->Bind(plan, arena, all.subspan(3 * count, count));
    reduced_ = TensorAt(reduce_.dst(), plan, reduced_id_, arena);
    mixed_ = TensorAt(spatial_.dst(), plan, mixed_id_, arena);
    forward_.base = arena + plan.offset(forward_id_);
    backward_.base = arena + plan.offset(backward_id_);
  }

  void Forward(Mode mode, const Tensor& src, const Tensor& dst, Stream& stream) override {
    const Scratch& s = forward_;
    reduce_.Forward(mode, src, {}, reduced_, s.At(s.reduce), stream);
    spatial_.Forward(mode, reduced_, {}, mixed_, s.At(s.spatial), stream);
    Tensor shortcut = src;
    if (downsample_) {
      shortcut = {downsample_->dst(), s.At(shortcut_id_)};
      downsample_->Forward(mode, src, {}, shortcut, s.At(s.downsample), stream);
    }
    expand_.Forward(mode, mixed_, shortcut, dst, s.At(s.expand), stream);
  }

  void Backward(Mode mode, const Tensor& src, const Tensor& dst, const Tensor& diff_dst,
                const Tensor& diff_src, Stream& stream) override {
    const Scratch& s = backward_;
    const Tensor diff_expanded{expand_.dst(), s.At(diff_expanded_id_)};
    const Tensor diff_mixed{spatial_.dst(), s.At(diff_mixed_id_)};
    const Tensor diff_reduced{reduce_.dst(), s.At(diff_reduced_id_)};
    const Tensor& diff_shortcut = downsample_ ? diff_dst : diff_src;
    expand_.Backward(mode, mixed_, dst, diff_dst,
                     {.convolved = diff_expanded, .residual = diff_shortcut, .src = diff_mixed},
                     s.At(s.expand), stream);
    spatial_.Backward(mode, reduced_, mixed_, diff_mixed,
                      {.convolved = diff_mixed, .residual = {}, .src = diff_reduced},
                      s.At(s.spatial), stream);
    if (downsample_) {
      downsample_->Backward(mode, src, {}, diff_shortcut,
                            {.convolved = diff_shortcut, .residual = {}, .src = diff_src},
                            s.At(s.downsample), stream);
    }
    reduce_.Backward(mode, src, reduced_, diff_reduced,
                     {.convolved = diff_reduced, .residual = {}, .src = diff_src}, s.At(s.reduce),
                     stream);
  }

 private:
  struct Scratch {
    MemoryPlan plan;
    std::byte* base = nullptr;
    int reduce = -1, spatial = -1, expand = -1, downsample = -1;  // workspaces

    std::byte* At(int id) const { return base + plan.offset(id); }
  };

  void PlanForward() {
    Scratch& s = forward_;
    s.reduce = s.plan.Reserve("reduce", reduce_.workspace_bytes(), 0, 0);
    s.spatial = s.plan.Reserve("spatial", spatial_.workspace_bytes(), 1, 1);
    if (downsample_) {
      s.downsample = s.plan.Reserve("downsample", downsample_->workspace_bytes(), 2, 2);
      shortcut_id_ = s.plan.Reserve("shortcut", downsample_->dst().bytes, 2, 3);
    }
    s.expand = s.plan.Reserve("expand", expand_.workspace_bytes(), 3, 3);
    s.plan.Solve();
  }

  void PlanBackward() {
    Scratch& s = backward_;
    s.expand = s.plan.Reserve("expand", expand_.workspace_bytes(), 0, 0);
    diff_expanded_id_ = s.plan.Reserve("diff_expanded", expand_.dst().bytes, 0, 0);
    diff_mixed_id_ = s.plan.Reserve("diff_mixed", spatial_.dst().bytes, 0, 1);
    s.spatial = s.plan.Reserve("spatial", spatial_.workspace_bytes(), 1, 1);
    diff_reduced_id_ = s.plan.Reserve("diff_reduced", reduce_.dst().bytes, 1, 3);
    if (downsample_) {
      s.downsample = s.plan.Reserve("downsample", downsample_->workspace_bytes(), 2, 2);
    }
    s.reduce = s.plan.Reserve("reduce", reduce_.workspace_bytes(), 3, 3);
    s.plan.Solve();
  }

  ConvolutionNorm reduce_;
  ConvolutionNorm spatial_;
  ConvolutionNorm expand_;
  std::optional<ConvolutionNorm> downsample_;
  std::vector<ParameterSpec> parameters_;

  Scratch forward_;
  Scratch backward_;
  int shortcut_id_ = -1;       // in forward_
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
