// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/libraries/convolution.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "trainer/backend/cuda/expansion/expansion.h"
#include "trainer/backend/cuda/expansion/expansion_autotune.h"
#include "trainer/backend/cuda/libraries/cudnn_device.h"
#include "trainer/backend/cuda/runtime/layout.h"
#include "trainer/backend/cuda/runtime/runtime.h"
#include "trainer/backend/cuda/runtime/timing.h"
#include "trainer/core/error.h"

namespace trainer {

std::shared_ptr<CudnnDevice> OpenCudnnDevice(const DevicePlanCache& plans) {
  return std::make_shared<CudnnDevice>(plans);
}

namespace {

class CudnnConvolution final : public Convolution {
 public:
  CudnnConvolution(std::shared_ptr<CudnnDevice> device, const EngineRules& rules,
                   const ConvolutionGraph& graph, const ConvolutionSpec& spec, TensorDesc filter,
                   TensorDesc dst)
      : device_(std::move(device)),
        channels_(static_cast<int>(graph.channels)),
        bn_stats_bytes_(2 * static_cast<std::size_t>(graph.filters) * sizeof(float)),
        filter_(std::move(filter)),
        dst_(std::move(dst)) {
    ConvolutionGraph of_pass = graph;
    for (std::size_t pass = 0; pass < algorithms_.size(); ++pass) {
      of_pass.pass = static_cast<ConvolutionPass>(pass);
      of_pass.adds = spec.adds_diff_src && of_pass.pass == ConvolutionPass::kBackwardData;
      algorithms_[pass] = &device_->Choose(of_pass, rules);
    }
    if (spec.wants_bn_stats) with_bn_stats_ = device_->ChooseWithBnStats(graph, rules);
    if (spec.follows_norm && !spec.adds_diff_src) masked_ = device_->ChooseDgradDrelu(graph, rules);
    if (!rules.deterministic) expansion_ = ChosenExpansion(spec);
  }

  const TensorDesc& filter() const override { return filter_; }
  const TensorDesc& dst() const override { return dst_; }
  std::size_t workspace_bytes() const override {
    std::vector<const ConvolutionAlgorithm*> all(algorithms_.begin(), algorithms_.end());
    if (with_bn_stats_ != nullptr) all.push_back(with_bn_stats_);
    if (masked_ != nullptr) all.push_back(masked_);
    std::size_t bytes = 0;
    for (const ConvolutionAlgorithm* algorithm : all) {
      bytes = std::max(bytes, algorithm->workspace_bytes());
    }
    return expansion_ ? std::max(bytes, ExpansionWorkspaceBytes(*expansion_)) : bytes;
  }

  void Forward(const Tensor& src, const Tensor& filter, const Tensor& dst, void* workspace,
               Stream& stream) override {
    Run(ConvolutionPass::kForward, src, filter, dst, workspace, stream);
  }
  std::size_t bn_stats_bytes() const override {
    return with_bn_stats_ != nullptr ? bn_stats_bytes_ : 0;
  }
  void ForwardWithBnStats(const Tensor& src, const Tensor& filter, const Tensor& dst, void* sums,
                          void* workspace, Stream& stream) override {
    DDL_CHECK(with_bn_stats_ != nullptr);
    with_bn_stats_->Run(device_->handle(), ConvolutionPass::kForward,
                        {.src = src.data, .filter = filter.data, .dst = dst.data, .sums = sums},
                        workspace, HandleOf(stream));
  }
  void BackwardData(const Tensor& diff_dst, const Tensor& filter, const Tensor& diff_src,
                    void* workspace, Stream& stream) override {
    Run(ConvolutionPass::kBackwardData, diff_src, filter, diff_dst, workspace, stream);
  }
  std::size_t bn_backward_stats_bytes() const override {
    return masked_ == nullptr && !expansion_ ? 0 : DreluBnStatsBytes();
  }
  void BackwardDataDreluBnStats(const Tensor& diff_dst, const Tensor& filter,
                                const NormInput& before, const Tensor& diff_src, void* sums,
                                void* workspace, Stream& stream) override {
    DDL_CHECK(masked_ != nullptr);
    masked_->Run(device_->handle(), ConvolutionPass::kBackwardData,
                 {.src = diff_src.data,
                  .filter = filter.data,
                  .dst = diff_dst.data,
                  .sums = sums,
                  .relu_mask = before.values.data,
                  .statistics = static_cast<const float*>(before.saved)},
                 workspace, HandleOf(stream));
  }
  void BackwardFilter(const Tensor& src, const Tensor& diff_dst, const Tensor& diff_filter,
                      void* workspace, Stream& stream) override {
    Run(ConvolutionPass::kBackwardFilter, src, diff_filter, diff_dst, workspace, stream);
  }
  bool applies_norm_backward() const override { return expansion_.has_value(); }
  void BackwardWithBnApply(const GradientBeforeBnBackward& diff_dst, const Tensor& filter,
                           const NormInput& before, const Tensor& diff_filter,
                           const Tensor& diff_src, void* sums, void* workspace,
                           Stream& stream) override {
    RunConv3Backward(
        expansion_.value(),
        ExpansionCallOf(diff_dst, filter, before, diff_filter, diff_src, sums, workspace),
        HandleOf(stream));
  }

 private:
  void Run(ConvolutionPass pass, const Tensor& src, const Tensor& filter, const Tensor& dst,
           void* workspace, Stream& stream) {
    algorithms_[static_cast<std::size_t>(pass)]->Run(
        device_->handle(), pass, {.src = src.data, .filter = filter.data, .dst = dst.data},
        workspace, HandleOf(stream));
  }

  std::size_t DreluBnStatsBytes() const {
    return kGradientSumArrays * static_cast<std::size_t>(channels_) * sizeof(float);
  }

  // The kernel, if it computes this convolution faster than what is chosen so far.
  std::optional<Conv3BackwardShape> ChosenExpansion(const ConvolutionSpec& spec) const {
    const std::optional<Conv3BackwardShape> shape = ExpansionOf(spec);
    if (!shape) return std::nullopt;
    const ScratchMemory workspace(workspace_bytes());
    ExpansionPasses passes;
    passes.gates = masked_ != nullptr;
    const auto run = [&](const ConvolutionAlgorithm* algorithm, ConvolutionPass pass,
                         const ConvolutionOperands& operands, cudaStream_t stream) {
      algorithm->Run(device_->handle(), pass, operands, workspace.data(), stream);
      // The handle outlives the stream of the autotuning.
      CheckCudnn(cudnnSetStream(device_->handle(), nullptr), "cuDNN: setting the stream");
    };
    passes.backward_filter = [&](const ExpansionPasses::Operands& operands, cudaStream_t stream) {
      constexpr auto kPass = ConvolutionPass::kBackwardFilter;
      run(algorithms_[static_cast<std::size_t>(kPass)], kPass,
          {.src = operands.src, .filter = operands.diff_filter, .dst = operands.diff_dst}, stream);
    };
    passes.backward_data = [&](const ExpansionPasses::Operands& operands, cudaStream_t stream) {
      constexpr auto kPass = ConvolutionPass::kBackwardData;
      const bool gates = masked_ != nullptr;
      run(gates ? masked_ : algorithms_[static_cast<std::size_t>(kPass)], kPass,
          {.src = operands.diff_src,
           .filter = operands.filter,
           .dst = operands.diff_dst,
           .sums = gates ? operands.sums : nullptr,
           .relu_mask = gates ? operands.before : nullptr,
           .statistics = gates ? operands.saved : nullptr},
          stream);
    };
    const bool takes = TakesExpansionKernel(*shape, passes, device_->plans());
    return takes ? shape : std::nullopt;
  }

  const std::shared_ptr<CudnnDevice> device_;
  const int channels_;  // of src, with padding
  const std::size_t bn_stats_bytes_;
  TensorDesc filter_;
  TensorDesc dst_;
  std::array<const ConvolutionAlgorithm*, 3> algorithms_{};  // by ConvolutionPass
  const ConvolutionAlgorithm* with_bn_stats_ = nullptr;      // none, or that of ForwardWithBnStats
  const ConvolutionAlgorithm* masked_ = nullptr;  // none, or that of BackwardDataDreluBnStats
  std::optional<Conv3BackwardShape> expansion_;   // that of BackwardWithBnApply
};

}  // namespace

std::unique_ptr<Convolution> MakeCudnnConvolution(std::shared_ptr<CudnnDevice> device,
                                                  const EngineRules& rules,
                                                  const ConvolutionSpec& spec) {
  const Shape& src = spec.src.shape;
  DDL_CHECK(src.rank() == 4 && src.elements() > 0);
  DDL_CHECK(spec.src.layout == Layout::kChannelsLast &&
            spec.src.bytes == CudaImages(src, spec.src.dtype).bytes);
  DDL_CHECK(spec.out_channels > 0 && spec.kernel > 0 && spec.stride > 0 && spec.padding >= 0);
  DDL_CHECK(std::min(src[2], src[3]) + 2 * spec.padding >= spec.kernel);
  const ConvolutionGraph graph{.images = src[0],
                               .channels = PaddedChannels(src[1]),
                               .height = src[2],
                               .width = src[3],
                               .filters = PaddedChannels(spec.out_channels),
                               .kernel = spec.kernel,
                               .stride = spec.stride,
                               .padding = spec.padding,
                               .dtype = spec.src.dtype};
  const DType dtype = spec.src.dtype;
  return std::make_unique<CudnnConvolution>(
      std::move(device), rules, graph, spec,
      CudaFilter({spec.out_channels, src[1], spec.kernel, spec.kernel}, dtype),
      CudaImages({src[0], spec.out_channels, graph.dst_height(), graph.dst_width()}, dtype));
}

}  // namespace trainer
