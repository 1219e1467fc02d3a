// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/convolution.h"

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "trainer/backend/cuda/layout.h"
#include "trainer/backend/cuda/runtime.h"
#include "trainer/backend/cuda/timing.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

// The product of matrices, as a plan of PlanCache.
constexpr const char* kProductPlan = "product";
// How many of the engines that cuDNN recommends are timed.
constexpr std::size_t kTimedPlans = 24;

std::size_t BytesOf(const ConvolutionGraph& graph, std::int64_t elements) {
  return static_cast<std::size_t>(elements) * SizeOf(graph.dtype);
}

// One algorithm for one pass of a convolution on the current device.
class Algorithm {
 public:
  explicit Algorithm(ConvolutionPlan plan) : plan_(std::move(plan)) {}
  Algorithm(const MatmulSpec& product, const DevicePlans& plans)
      : product_(std::make_unique<Matmul>(product, plans)) {}

  std::size_t workspace_bytes() const {
    return plan_ ? plan_->workspace_bytes() : product_->workspace_bytes();
  }

  // Of cuDNN; none if it is the product of matrices.
  std::optional<PlanId> plan_id() const {
    return plan_ ? std::optional(plan_->id()) : std::nullopt;
  }

  // Queues the pass on `stream`.
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

// What is the fastest for a graph: a plan of cuDNN, or, if none, the product of matrices.  Never
// the thing itself, which is of one back end and goes with it.
using Winner = std::optional<PlanId>;

// `race()` finds the winner for the graph on the device.  It runs once in this process: timing is
// slow, and so all back ends of the process compute alike.
Winner WinnerInProcess(int device, const ConvolutionGraph& graph, const EngineRules& rules,
                       const std::function<Winner()>& race) {
  struct Known {
    int device;
    ConvolutionGraph graph;
    EngineRules rules;
    Winner winner;
  };
  static std::mutex mutex;
  static std::vector<Known> all;
  const std::scoped_lock lock(mutex);
  for (const Known& known : all) {
    if (known.device == device && known.graph == graph && known.rules == rules) {
      return known.winner;
    }
  }
  return all.emplace_back(Known{device, graph, rules, race()}).winner;
}

}  // namespace

class CudnnDevice {
 public:
  explicit CudnnDevice(DevicePlans plans) : plans_(std::move(plans)) {
    CheckCuda(cudaGetDevice(&device_), "asking for the current GPU");
    cudnnHandle_t handle = nullptr;
    CheckCudnn(cudnnCreate(&handle), "starting cuDNN");
    handle_.reset(handle);
  }

  cudnnHandle_t handle() const { return handle_.get(); }

  const Algorithm& Choose(const ConvolutionGraph& graph, const EngineRules& rules) {
    for (const Choice& choice : choices_) {
      if (choice.graph == graph && choice.rules == rules) return choice.algorithm;
    }
    return choices_.emplace_back(Choice{graph, rules, Find(graph, rules)}).algorithm;
  }

 private:
  struct Choice {
    ConvolutionGraph graph;
    EngineRules rules;
    Algorithm algorithm;
  };
  struct Destroy {
    void operator()(cudnnHandle_t handle) const {
      // The stream that it ran on last may be gone, so cuDNN shall not look at it.
      cudnnSetStream(handle, nullptr);
      cudnnDestroy(handle);
    }
  };

  CudnnTarget target() const { return {handle(), nullptr}; }

  // The winner in this process, made for this handle.
  Algorithm Find(const ConvolutionGraph& graph, const EngineRules& rules) const {
    std::optional<Algorithm> own;  // where nobody in this process had asked before
    const Winner winner = WinnerInProcess(device_, graph, rules, [&] {
      auto kept = Kept(graph, rules);
      if (kept) return own.emplace(std::move(*kept)).plan_id();
      own.emplace(Race(graph, rules));
      Keep(graph, rules, own->plan_id());
      return own->plan_id();
    });
    if (own) return std::move(*own);
    auto again = Again(graph, rules, winner);
    if (again) return std::move(*again);
    return Race(graph, rules);  // cuDNN cannot build that one here any more
  }

  std::optional<Algorithm> Again(const ConvolutionGraph& graph, const EngineRules& rules,
                                 const Winner& winner) const {
    if (!winner) {
      const std::optional<MatmulSpec> product = ProductOf(graph, rules);
      return product ? std::optional(Algorithm(*product, plans_)) : std::nullopt;
    }
    auto plan = FindPlanAgain(target(), graph, rules, *winner);
    return plan ? std::optional(Algorithm(std::move(*plan))) : std::nullopt;
  }

  // Of an earlier process.
  std::optional<Algorithm> Kept(const ConvolutionGraph& graph, const EngineRules& rules) const {
    if (rules.deterministic) return std::nullopt;
    const std::optional<std::string> plan = plans_.Find(NameOf(graph, rules));
    if (!plan) return std::nullopt;
    const Winner winner = PlanIdOf(*plan);
    if (!winner && *plan != kProductPlan) return std::nullopt;
    try {
      return Again(graph, rules, winner);
    } catch (const Error& error) {
      if (error.exit_code() != EX_UNAVAILABLE) throw;
      return std::nullopt;
    }
  }

  void Keep(const ConvolutionGraph& graph, const EngineRules& rules, const Winner& winner) const {
    if (rules.deterministic) return;
    plans_.Add(NameOf(graph, rules), winner ? PlanOf(*winner) : kProductPlan);
  }

  static std::string NameOf(const ConvolutionGraph& graph, const EngineRules& rules) {
    return ToString(graph) + (rules.tf32 ? ", TF32" : "");
  }

  Algorithm Race(const ConvolutionGraph& graph, const EngineRules& rules) const {
    std::vector<Algorithm> candidates = CandidatesFor(graph, rules);
    const std::size_t fastest = candidates.size() == 1 ? 0 : Fastest(graph, candidates);
    return std::move(candidates[fastest]);
  }

  std::vector<Algorithm> CandidatesFor(const ConvolutionGraph& graph,
                                       const EngineRules& rules) const {
    std::vector<Algorithm> candidates;
    const std::size_t most = rules.deterministic ? 1 : kTimedPlans;
    for (ConvolutionPlan& plan : FindPlans(target(), graph, rules, most)) {
      candidates.emplace_back(std::move(plan));
    }
    const std::optional<MatmulSpec> product = ProductOf(graph, rules);
    if (!product || rules.deterministic) return candidates;
    try {
      candidates.emplace_back(*product, plans_);
    } catch (const Error& error) {
      if (error.exit_code() != EX_UNAVAILABLE) throw;  // cuBLASLt has none: cuDNN has
    }
    return candidates;
  }

  std::size_t Fastest(const ConvolutionGraph& graph,
                      const std::vector<Algorithm>& candidates) const {
    std::size_t workspace_bytes = 0;
    for (const Algorithm& candidate : candidates) {
      workspace_bytes = std::max(workspace_bytes, candidate.workspace_bytes());
    }
    const TimingMemory memory(graph, workspace_bytes);
    try {
      return FastestOf(candidates.size(), [&](std::size_t i, cudaStream_t stream) {
        candidates[i].Run(handle(), graph.pass, memory.src.data(), memory.filter.data(),
                          memory.dst.data(), memory.workspace.data(), stream);
        // The handle outlives the stream of the race.
        CheckCudnn(cudnnSetStream(handle(), nullptr), "cuDNN: setting the stream");
      });
    } catch (const Error& error) {
      if (error.exit_code() == EX_OSERR) throw;
      throw Error(EX_UNAVAILABLE,
                  "no engine of cuDNN runs the " + ToString(graph) + ": " + error.what());
    }
  }

  const DevicePlans plans_;
  int device_ = 0;
  // Outlives the plans that were made with it.
  std::unique_ptr<std::remove_pointer_t<cudnnHandle_t>, Destroy> handle_;
  std::deque<Choice> choices_;  // algorithms stay where they are
};

std::shared_ptr<CudnnDevice> OpenCudnnDevice(const DevicePlans& plans) {
  return std::make_shared<CudnnDevice>(plans);
}

namespace {

class CudnnConvolution final : public Convolution {
 public:
  CudnnConvolution(std::shared_ptr<CudnnDevice> device, const EngineRules& rules,
                   const ConvolutionGraph& graph, bool adds_diff_src, TensorDesc filter,
                   TensorDesc dst)
      : device_(std::move(device)), filter_(std::move(filter)), dst_(std::move(dst)) {
    ConvolutionGraph of_pass = graph;
    for (std::size_t pass = 0; pass < algorithms_.size(); ++pass) {
      of_pass.pass = static_cast<ConvolutionPass>(pass);
      of_pass.adds = adds_diff_src && of_pass.pass == ConvolutionPass::kBackwardData;
      algorithms_[pass] = &device_->Choose(of_pass, rules);
    }
  }

  const TensorDesc& filter() const override { return filter_; }
  const TensorDesc& dst() const override { return dst_; }
  std::size_t workspace_bytes() const override {
    std::size_t bytes = 0;
    for (const Algorithm* algorithm : algorithms_) {
      bytes = std::max(bytes, algorithm->workspace_bytes());
    }
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
    algorithms_[static_cast<std::size_t>(pass)]->Run(device_->handle(), pass, src.data, filter.data,
                                                     dst.data, workspace, HandleOf(stream));
  }

  const std::shared_ptr<CudnnDevice> device_;
  TensorDesc filter_;
  TensorDesc dst_;
  std::array<const Algorithm*, 3> algorithms_{};  // by ConvolutionPass
};

}  // namespace

std::optional<MatmulSpec> ProductOf(const ConvolutionGraph& graph, const EngineRules& rules) {
  if (graph.kernel != 1 || graph.stride != 1 || graph.padding != 0) return std::nullopt;
  const std::int64_t pixels = graph.images * graph.height * graph.width;
  MatmulSpec spec{.input = graph.dtype,
                  .output = graph.dtype,
                  .adds = graph.adds,
                  .tf32 = rules.tf32,
                  .deterministic = rules.deterministic};
  switch (graph.pass) {
    case ConvolutionPass::kForward:  // pixels x channels, times filters x channels transposed
      spec.rows = pixels;
      spec.columns = graph.filters;
      spec.inner = graph.channels;
      spec.transpose_b = true;
      break;
    case ConvolutionPass::kBackwardData:  // pixels x filters, times filters x channels
      spec.rows = pixels;
      spec.columns = graph.channels;
      spec.inner = graph.filters;
      break;
    case ConvolutionPass::kBackwardFilter:  // pixels x filters transposed, times pixels x channels
      spec.rows = graph.filters;
      spec.columns = graph.channels;
      spec.inner = pixels;
      spec.transpose_a = true;
      break;
  }
  return spec;
}

ProductOperands OperandsOf(ConvolutionPass pass, void* src, void* filter, void* dst) {
  if (pass == ConvolutionPass::kForward) return {src, filter, dst};
  if (pass == ConvolutionPass::kBackwardData) return {dst, filter, src};
  return {dst, src, filter};
}

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
      std::move(device), rules, graph, spec.adds_diff_src,
      CudaFilter({spec.out_channels, src[1], spec.kernel, spec.kernel}, dtype),
      CudaImages({src[0], spec.out_channels, graph.dst_height(), graph.dst_width()}, dtype));
}

}  // namespace trainer
