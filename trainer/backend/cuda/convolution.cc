// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/convolution.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/backend/cuda/convolution_product.h"
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

// One way to compute one pass of a convolution on the current device.
class Way {
 public:
  explicit Way(ConvolutionPlan plan) : plan_(std::move(plan)) {}
  explicit Way(const MatmulSpec& product) : product_(std::make_unique<Matmul>(product)) {}

  std::size_t workspace_bytes() const {
    return plan_ ? plan_->workspace_bytes() : product_->workspace_bytes();
  }

  void Run(cudnnHandle_t handle, ConvolutionPass pass, void* src, void* filter, void* dst,
           void* workspace, cudaStream_t stream) const {
    if (plan_) {
      CheckCudnn(cudnnSetStream(handle, stream), "cuDNN: setting the stream");
      plan_->Execute(handle, src, filter, dst, workspace);
    } else {
      const ProductOperands operands = OperandsOf(pass, src, filter, dst);
      product_->Run(operands.a, operands.b, nullptr, operands.d, workspace, stream);
    }
  }

 private:
  std::optional<ConvolutionPlan> plan_;
  std::unique_ptr<Matmul> product_;  // if there is no plan
};

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

  const Way& Choose(const ConvolutionGraph& graph, const EngineRules& rules) {
    const std::scoped_lock lock(mutex_);
    for (const Choice& choice : choices_) {
      if (choice.graph == graph && choice.rules == rules) return choice.way;
    }
    std::vector<Way> ways = WaysOf(graph, rules);
    const std::size_t fastest = ways.size() == 1 ? 0 : Fastest(graph, ways);
    return choices_.emplace_back(Choice{graph, rules, std::move(ways[fastest])}).way;
  }

  // Queues one pass on `stream`.
  void Run(const Way& way, ConvolutionPass pass, void* src, void* filter, void* dst,
           void* workspace, cudaStream_t stream) {
    const std::scoped_lock lock(mutex_);
    way.Run(handle_, pass, src, filter, dst, workspace, stream);
  }

 private:
  struct Choice {
    ConvolutionGraph graph;
    EngineRules rules;
    Way way;
  };

  std::vector<Way> WaysOf(const ConvolutionGraph& graph, const EngineRules& rules) const {
    std::vector<Way> ways;
    const std::size_t most = rules.deterministic ? 1 : kTimedPlans;
    for (ConvolutionPlan& plan : FindPlans({handle_, nullptr}, graph, rules, most)) {
      ways.emplace_back(std::move(plan));
    }
    const std::optional<MatmulSpec> product = ProductOf(graph, rules);
    if (!product || rules.deterministic) return ways;
    try {
      ways.emplace_back(*product);
    } catch (const Error& error) {
      if (error.exit_code() != EX_UNAVAILABLE) throw;  // cuBLASLt has none: cuDNN has
    }
    return ways;
  }

  std::size_t Fastest(const ConvolutionGraph& graph, const std::vector<Way>& ways) {
    std::size_t workspace_bytes = 0;
    for (const Way& way : ways) workspace_bytes = std::max(workspace_bytes, way.workspace_bytes());
    const TimingMemory memory(graph, workspace_bytes);
    try {
      return FastestOf(ways.size(), [&](std::size_t i, cudaStream_t stream) {
        ways[i].Run(handle_, graph.pass, memory.src.data(), memory.filter.data(), memory.dst.data(),
                    memory.workspace.data(), stream);
        // The handle outlives the stream of the race.
        CheckCudnn(cudnnSetStream(handle_, nullptr), "cuDNN: setting the stream");
      });
    } catch (const Error& error) {
      if (error.exit_code() == EX_OSERR) throw;
      throw Error(EX_UNAVAILABLE,
                  "no engine of cuDNN runs the " + ToString(graph) + ": " + error.what());
    }
  }

  std::mutex mutex_;
  cudnnHandle_t handle_ = nullptr;  // never destroyed: CUDA may end before static objects do
  std::deque<Choice> choices_;      // ways stay where they are
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
    for (std::size_t pass = 0; pass < ways_.size(); ++pass) {
      of_pass.pass = static_cast<ConvolutionPass>(pass);
      of_pass.adds = adds_diff_src && of_pass.pass == ConvolutionPass::kBackwardData;
      ways_[pass] = &device.Choose(of_pass, rules);
    }
  }

  const TensorDesc& filter() const override { return filter_; }
  const TensorDesc& dst() const override { return dst_; }
  std::size_t workspace_bytes() const override {
    std::size_t bytes = 0;
    for (const Way* way : ways_) bytes = std::max(bytes, way->workspace_bytes());
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
    device_.Run(*ways_[static_cast<std::size_t>(pass)], pass, src.data, filter.data, dst.data,
                workspace, HandleOf(stream));
  }

  CudnnDevice& device_;
  TensorDesc filter_;
  TensorDesc dst_;
  std::array<const Way*, 3> ways_{};  // by ConvolutionPass
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
