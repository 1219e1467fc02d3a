// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/libraries/convolution.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "trainer/backend/cuda/libraries/cudnn_device.h"
#include "trainer/backend/cuda/runtime/layout.h"
#include "trainer/backend/cuda/runtime/runtime.h"
#include "trainer/core/error.h"

namespace trainer {

std::shared_ptr<CudnnDevice> OpenCudnnDevice(const DevicePlanCache& plans) {
  return std::make_shared<CudnnDevice>(plans);
}

namespace {

class CudnnConvolution final : public CudaConvolution {
 public:
  CudnnConvolution(std::shared_ptr<CudnnDevice> device, const EngineRules& rules,
                   const ConvolutionGraph& graph, const ConvolutionFusions& fusions,
                   TensorDesc filter, TensorDesc dst)
      : device_(std::move(device)),
        channels_(static_cast<int>(graph.channels)),
        bn_stats_bytes_(2 * static_cast<std::size_t>(graph.filters) * sizeof(float)),
        filter_(std::move(filter)),
        dst_(std::move(dst)) {
    ConvolutionGraph of_pass = graph;
    for (std::size_t pass = 0; pass < algorithms_.size(); ++pass) {
      of_pass.pass = static_cast<ConvolutionPass>(pass);
      of_pass.adds = graph.adds && of_pass.pass == ConvolutionPass::kBackwardData;
      algorithms_[pass] = &device_->Choose(of_pass, rules);
    }
    of_pass = graph;
    of_pass.adds = false;
    if (fusions.bn_stats) with_bn_stats_ = device_->ChooseWithBnStats(of_pass, rules);
    if (fusions.drelu) masked_ = device_->ChooseDgradDrelu(of_pass, rules);
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
    return bytes;
  }

  void Forward(const Tensor& src, const Tensor& filter, const Tensor& dst, void* workspace,
               Stream& stream) override {
    Run(ConvolutionPass::kForward, src, filter, dst, workspace, stream);
  }
  std::size_t bn_stats_bytes() const override {
    return with_bn_stats_ != nullptr ? bn_stats_bytes_ : 0;
  }
  void ForwardWithBnStats(const Tensor& src, const Tensor& filter, const Tensor& dst, float* sums,
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
  std::size_t drelu_sums_bytes() const override {
    return masked_ == nullptr
               ? 0
               : kGradientSumArrays * static_cast<std::size_t>(channels_) * sizeof(float);
  }
  void BackwardDataDreluBnStats(const Tensor& diff_dst, const Tensor& filter, const void* z,
                                const float* saved, const Tensor& diff_src, float* sums,
                                void* workspace, Stream& stream) override {
    DDL_CHECK(masked_ != nullptr);
    masked_->Run(device_->handle(), ConvolutionPass::kBackwardData,
                 {.src = diff_src.data,
                  .filter = filter.data,
                  .dst = diff_dst.data,
                  .sums = sums,
                  .norm_src = z,
                  .statistics = saved},
                 workspace, HandleOf(stream));
  }
  void BackwardFilter(const Tensor& src, const Tensor& diff_dst, const Tensor& diff_filter,
                      void* workspace, Stream& stream) override {
    Run(ConvolutionPass::kBackwardFilter, src, diff_filter, diff_dst, workspace, stream);
  }

 private:
  void Run(ConvolutionPass pass, const Tensor& src, const Tensor& filter, const Tensor& dst,
           void* workspace, Stream& stream) {
    algorithms_[static_cast<std::size_t>(pass)]->Run(
        device_->handle(), pass, {.src = src.data, .filter = filter.data, .dst = dst.data},
        workspace, HandleOf(stream));
  }

  const std::shared_ptr<CudnnDevice> device_;
  const int channels_;  // of src, with padding
  const std::size_t bn_stats_bytes_;
  TensorDesc filter_;
  TensorDesc dst_;
  std::array<const ConvolutionAlgorithm*, 3> algorithms_{};  // by ConvolutionPass
  const ConvolutionAlgorithm* with_bn_stats_ = nullptr;      // none, or that of ForwardWithBnStats
  const ConvolutionAlgorithm* masked_ = nullptr;  // none, or that of BackwardDataDreluBnStats
};

}  // namespace

std::unique_ptr<CudaConvolution> MakeCudnnConvolution(std::shared_ptr<CudnnDevice> device,
                                                      const EngineRules& rules,
                                                      const ConvolutionSpec& spec,
                                                      const ConvolutionFusions& fusions) {
  const Shape& src = spec.src.shape;
  DDL_CHECK(src.rank() == 4 && src.elements() > 0);
  DDL_CHECK(spec.src.layout == Layout::kChannelsLast &&
            spec.src.bytes == CudaImages(src, spec.src.dtype).bytes);
  DDL_CHECK(!fusions.drelu || !spec.adds_diff_src);
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
                               .dtype = spec.src.dtype,
                               .adds = spec.adds_diff_src};
  const DType dtype = spec.src.dtype;
  return std::make_unique<CudnnConvolution>(
      std::move(device), rules, graph, fusions,
      CudaFilter({spec.out_channels, src[1], spec.kernel, spec.kernel}, dtype),
      CudaImages({src[0], spec.out_channels, graph.dst_height(), graph.dst_width()}, dtype));
}

}  // namespace trainer
