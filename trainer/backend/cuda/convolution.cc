// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/convolution.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "trainer/backend/cuda/layout.h"
#include "trainer/backend/cuda/runtime.h"
#include "trainer/backend/cuda/timing.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

// How many of the engines that cuDNN recommends are timed.
constexpr std::size_t kTimedPlans = 24;

std::size_t BytesOf(const ConvolutionGraph& graph, std::int64_t elements) {
  return static_cast<std::size_t>(elements) * SizeOf(graph.dtype);
}

// Memory for one run of any pass of a convolution.
struct TimingMemory {
  ScratchMemory src, filter, dst, workspace;

  TimingMemory(const ConvolutionGraph& graph, std::size_t workspace_bytes)
      : src(BytesOf(graph, graph.images * graph.height * graph.width * graph.channels)),
        filter(BytesOf(graph, graph.filters * graph.kernel * graph.kernel * graph.channels)),
        dst(BytesOf(graph, graph.images * graph.dst_height() * graph.dst_width() * graph.filters)),
        workspace(workspace_bytes) {}
};

}  // namespace

class CudnnDevice {
 public:
  CudnnDevice() { CheckCudnn(cudnnCreate(&handle_), "starting cuDNN"); }

  const ConvolutionPlan& Choose(const ConvolutionGraph& graph, const EngineRules& rules) {
    const std::scoped_lock lock(mutex_);
    for (const Choice& choice : choices_) {
      if (choice.graph == graph && choice.rules == rules) return choice.plan;
    }
    std::vector<ConvolutionPlan> plans =
        FindPlans({handle_, nullptr}, graph, rules, rules.deterministic ? 1 : kTimedPlans);
    const std::size_t fastest = plans.size() == 1 ? 0 : Fastest(graph, plans);
    return choices_.emplace_back(Choice{graph, rules, std::move(plans[fastest])}).plan;
  }

  // Queues one pass on `stream`.
  void Run(const ConvolutionPlan& plan, void* src, void* filter, void* dst, void* workspace,
           cudaStream_t stream) {
    const std::scoped_lock lock(mutex_);
    RunLocked(plan, src, filter, dst, workspace, stream);
  }

 private:
  struct Choice {
    ConvolutionGraph graph;
    EngineRules rules;
    ConvolutionPlan plan;
  };

  void RunLocked(const ConvolutionPlan& plan, void* src, void* filter, void* dst, void* workspace,
                 cudaStream_t stream) {
    CheckCudnn(cudnnSetStream(handle_, stream), "cuDNN: setting the stream");
    plan.Execute(handle_, src, filter, dst, workspace);
  }

  std::size_t Fastest(const ConvolutionGraph& graph, const std::vector<ConvolutionPlan>& plans) {
    std::size_t workspace_bytes = 0;
    for (const ConvolutionPlan& plan : plans) {
      workspace_bytes = std::max(workspace_bytes, plan.workspace_bytes());
    }
    const TimingMemory memory(graph, workspace_bytes);
    try {
      return FastestOf(plans.size(), [&](std::size_t i, cudaStream_t stream) {
        RunLocked(plans[i], memory.src.data(), memory.filter.data(), memory.dst.data(),
                  memory.workspace.data(), stream);
        // The handle outlives the stream of the race.
        CheckCudnn(cudnnSetStream(handle_, nullptr), "cuDNN: setting the stream");
      });
    } catch (const Error& error) {
      throw Error(EX_UNAVAILABLE,
                  "no engine of cuDNN runs the " + ToString(graph) + ": " + error.what());
    }
  }

  std::mutex mutex_;
  cudnnHandle_t handle_ = nullptr;  // never destroyed: CUDA may end before static objects do
  std::deque<Choice> choices_;      // plans stay where they are
};

CudnnDevice& CurrentCudnnDevice() {
  static std::mutex mutex;
  static auto& devices = *new std::map<int, CudnnDevice>;
  int device = 0;
  CheckCuda(cudaGetDevice(&device), "asking for the current GPU");
  const std::scoped_lock lock(mutex);
  return devices[device];
}

namespace {

class CudnnConvolution final : public Convolution {
 public:
  CudnnConvolution(CudnnDevice& device, const EngineRules& rules, const ConvolutionGraph& graph,
                   bool adds_diff_src, TensorDesc filter, TensorDesc dst)
      : device_(device), filter_(std::move(filter)), dst_(std::move(dst)) {
    ConvolutionGraph of_pass = graph;
    for (std::size_t pass = 0; pass < plans_.size(); ++pass) {
      of_pass.pass = static_cast<ConvolutionPass>(pass);
      of_pass.adds = adds_diff_src && of_pass.pass == ConvolutionPass::kBackwardData;
      plans_[pass] = &device.Choose(of_pass, rules);
    }
  }

  const TensorDesc& filter() const override { return filter_; }
  const TensorDesc& dst() const override { return dst_; }
  std::size_t workspace_bytes() const override {
    std::size_t bytes = 0;
    for (const ConvolutionPlan* plan : plans_) bytes = std::max(bytes, plan->workspace_bytes());
    return bytes;
  }

  void Forward(const Tensor& src, const Tensor& filter, const Tensor& dst, void* workspace,
               Stream& stream) override {
    Run(ConvolutionPass::kForward, src, filter, dst, workspace, stream);
  }
  void BackwardData(const Tensor& diff_dst, const Tensor& filter, const Tensor& diff_src,
                    void* workspace, Stream& stream) override {
    Run(ConvolutionPass::kBackwardData, diff_src, filter, diff_dst, workspace, stream);
  }
  void BackwardFilter(const Tensor& src, const Tensor& diff_dst, const Tensor& diff_filter,
                      void* workspace, Stream& stream) override {
    Run(ConvolutionPass::kBackwardFilter, src, diff_filter, diff_dst, workspace, stream);
  }

 private:
  void Run(ConvolutionPass pass, const Tensor& src, const Tensor& filter, const Tensor& dst,
           void* workspace, Stream& stream) {
    device_.Run(*plans_[static_cast<std::size_t>(pass)], src.data, filter.data, dst.data, workspace,
                HandleOf(stream));
  }

  CudnnDevice& device_;
  TensorDesc filter_;
  TensorDesc dst_;
  std::array<const ConvolutionPlan*, 3> plans_{};  // by ConvolutionPass
};

}  // namespace

std::unique_ptr<Convolution> MakeCudnnConvolution(CudnnDevice& device, const EngineRules& rules,
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
      device, rules, graph, spec.adds_diff_src,
      CudaFilter({spec.out_channels, src[1], spec.kernel, spec.kernel}, dtype),
      CudaImages({src[0], spec.out_channels, graph.dst_height(), graph.dst_width()}, dtype));
}

}  // namespace trainer
