// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/cudnn_device.h"

#include <algorithm>
#include <functional>
#include <mutex>
#include <utility>

#include "trainer/backend/cuda/batch_norm_kernels.h"
#include "trainer/backend/cuda/convolution_product.h"
#include "trainer/backend/cuda/runtime.h"
#include "trainer/backend/cuda/timing.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

// What is no plan of cuDNN, as a plan of PlanCache: the product of matrices, and sums in a pass of
// their own.
constexpr const char* kProductPlan = "product";
constexpr const char* kSeparatePlan = "separate";
// How many of the engines that cuDNN recommends are timed.
constexpr std::size_t kTimedPlans = 24;

std::size_t BytesOf(const ConvolutionGraph& graph, std::int64_t elements) {
  return static_cast<std::size_t>(elements) * SizeOf(graph.dtype);
}

// Memory for one run of any pass of a convolution.
struct TimingMemory {
  ScratchMemory src, filter, dst, sums, workspace;

  TimingMemory(const ConvolutionGraph& graph, std::size_t workspace_bytes)
      : src(BytesOf(graph, graph.images * graph.height * graph.width * graph.channels)),
        filter(BytesOf(graph, graph.filters * graph.kernel * graph.kernel * graph.channels)),
        dst(BytesOf(graph, graph.images * graph.dst_height() * graph.dst_width() * graph.filters)),
        sums(graph.sums ? 2 * static_cast<std::size_t>(graph.filters) * sizeof(float) : 0),
        workspace(workspace_bytes) {}

  // Queues one run of `algorithm` for a graph of that size.
  void Run(const ConvolutionAlgorithm& algorithm, const ConvolutionGraph& graph,
           cudnnHandle_t handle, cudaStream_t stream) const {
    algorithm.Run(handle, graph.pass, src.data(), filter.data(), dst.data(),
                  graph.sums ? sums.data() : nullptr, workspace.data(), stream);
    // The handle outlives the stream of the race.
    CheckCudnn(cudnnSetStream(handle, nullptr), "cuDNN: setting the stream");
  }
};

// The result of `graph` as a batch norm sees it.
NormShape NormShapeOf(const ConvolutionGraph& graph) {
  NormShape shape;
  shape.pixels = graph.images * graph.dst_height() * graph.dst_width();
  shape.channels = shape.padded = static_cast<int>(graph.filters);
  shape.dtype = graph.dtype;
  shape.multiprocessors = Multiprocessors();
  return shape;
}

std::string NameOf(const ConvolutionGraph& graph, const EngineRules& rules) {
  return ToString(graph) + (rules.tf32 ? ", TF32" : "");
}

using Winner = CudnnDevice::Winner;

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

void ConvolutionAlgorithm::Run(cudnnHandle_t handle, ConvolutionPass pass, void* src, void* filter,
                               void* dst, void* sums, void* workspace, cudaStream_t stream) const {
  if (plan_) {
    CheckCudnn(cudnnSetStream(handle, stream), "cuDNN: setting the stream");
    plan_->Execute(handle, src, filter, dst, sums, workspace);
  } else {
    DDL_CHECK(sums == nullptr);
    const ProductOperands operands = OperandsOf(pass, src, filter, dst);
    product_->Run(operands.a, operands.b, nullptr, operands.d, workspace, stream);
  }
}

void CudnnDevice::Destroy::operator()(cudnnHandle_t handle) const {
  // The stream that it ran on last may be gone, so cuDNN shall not look at it.
  cudnnSetStream(handle, nullptr);
  cudnnDestroy(handle);
}

CudnnDevice::CudnnDevice(DevicePlans plans) : plans_(std::move(plans)) {
  CheckCuda(cudaGetDevice(&device_), "asking for the current GPU");
  cudnnHandle_t handle = nullptr;
  CheckCudnn(cudnnCreate(&handle), "starting cuDNN");
  handle_.reset(handle);
}

const CudnnDevice::Choice* CudnnDevice::Known(const ConvolutionGraph& graph,
                                              const EngineRules& rules) const {
  const auto known = std::find_if(choices_.begin(), choices_.end(), [&](const Choice& choice) {
    return choice.graph == graph && choice.rules == rules;
  });
  return known == choices_.end() ? nullptr : &*known;
}

const ConvolutionAlgorithm& CudnnDevice::Choose(const ConvolutionGraph& graph,
                                                const EngineRules& rules) {
  DDL_CHECK(!graph.sums);
  const Choice* choice = Known(graph, rules);
  if (choice == nullptr) choice = &choices_.emplace_back(Choice{graph, rules, Find(graph, rules)});
  return *choice->algorithm;
}

const ConvolutionAlgorithm* CudnnDevice::ChooseWithSums(const ConvolutionGraph& graph,
                                                        const EngineRules& rules) {
  // cuDNN does not say of an engine that gives sums whether its bits are the same each time.
  if (rules.deterministic) return nullptr;
  const ConvolutionAlgorithm& without = Choose(graph, rules);
  ConvolutionGraph with_sums = graph;
  with_sums.sums = true;
  const Choice* choice = Known(with_sums, rules);
  if (choice == nullptr) {
    const Winner winner = WinnerInProcess(device_, with_sums, rules,
                                          [&] { return FindWithSums(with_sums, rules, without); });
    choice = &choices_.emplace_back(
        Choice{with_sums, rules, winner ? Again(with_sums, rules, winner) : std::nullopt});
  }
  return choice->algorithm ? &*choice->algorithm : nullptr;
}

// The winner in this process, made for this handle.
ConvolutionAlgorithm CudnnDevice::Find(const ConvolutionGraph& graph,
                                       const EngineRules& rules) const {
  std::optional<ConvolutionAlgorithm> own;  // where nobody in this process had asked before
  const Winner winner = WinnerInProcess(device_, graph, rules, [&] {
    auto kept = Kept(graph, rules);
    if (kept) return own.emplace(std::move(*kept)).plan_id();
    own.emplace(Race(graph, rules));
    if (!rules.deterministic) {
      plans_.Add(NameOf(graph, rules), own->plan_id() ? PlanOf(*own->plan_id()) : kProductPlan);
    }
    return own->plan_id();
  });
  if (own) return std::move(*own);
  auto again = Again(graph, rules, winner);
  if (again) return std::move(*again);
  return Race(graph, rules);  // cuDNN cannot build that one here any more
}

// None if it cannot be had any more.
std::optional<ConvolutionAlgorithm> CudnnDevice::Again(const ConvolutionGraph& graph,
                                                       const EngineRules& rules,
                                                       const Winner& winner) const {
  try {
    if (!winner) {
      const std::optional<MatmulSpec> product = ProductOf(graph, rules);
      return product ? std::optional(ConvolutionAlgorithm(*product, plans_)) : std::nullopt;
    }
    auto plan = FindPlanAgain(target(), graph, rules, *winner);
    return plan ? std::optional(ConvolutionAlgorithm(std::move(*plan))) : std::nullopt;
  } catch (const Error& error) {
    if (error.exit_code() != EX_UNAVAILABLE) throw;
    return std::nullopt;
  }
}

// Of an earlier process.
std::optional<ConvolutionAlgorithm> CudnnDevice::Kept(const ConvolutionGraph& graph,
                                                      const EngineRules& rules) const {
  if (rules.deterministic) return std::nullopt;
  const std::optional<std::string> plan = plans_.Find(NameOf(graph, rules));
  if (!plan) return std::nullopt;
  const Winner winner = PlanIdOf(*plan);
  if (!winner && *plan != kProductPlan) return std::nullopt;
  return Again(graph, rules, winner);
}

ConvolutionAlgorithm CudnnDevice::Race(const ConvolutionGraph& graph,
                                       const EngineRules& rules) const {
  std::vector<ConvolutionAlgorithm> candidates = CandidatesFor(graph, rules);
  const std::size_t fastest = candidates.size() == 1 ? 0 : Fastest(graph, candidates);
  return std::move(candidates[fastest]);
}

std::vector<ConvolutionAlgorithm> CudnnDevice::CandidatesFor(const ConvolutionGraph& graph,
                                                             const EngineRules& rules) const {
  std::vector<ConvolutionAlgorithm> candidates;
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

std::size_t CudnnDevice::Fastest(const ConvolutionGraph& graph,
                                 const std::vector<ConvolutionAlgorithm>& candidates) const {
  std::size_t workspace_bytes = 0;
  for (const ConvolutionAlgorithm& candidate : candidates) {
    workspace_bytes = std::max(workspace_bytes, candidate.workspace_bytes());
  }
  const TimingMemory memory(graph, workspace_bytes);
  try {
    return FastestOf(candidates.size(), [&](std::size_t i, cudaStream_t stream) {
      memory.Run(candidates[i], graph, handle(), stream);
    });
  } catch (const Error& error) {
    if (error.exit_code() == EX_OSERR) throw;
    throw Error(EX_UNAVAILABLE,
                "no engine of cuDNN runs the " + ToString(graph) + ": " + error.what());
  }
}

// As PlanCache has it, or as a race shows.
CudnnDevice::Winner CudnnDevice::FindWithSums(const ConvolutionGraph& graph,
                                              const EngineRules& rules,
                                              const ConvolutionAlgorithm& without) const {
  if (const auto kept = plans_.Find(NameOf(graph, rules))) {
    const Winner winner = PlanIdOf(*kept);
    if (*kept == kSeparatePlan || (winner && Again(graph, rules, winner))) return winner;
  }
  const Winner winner = RaceWithSums(graph, rules, without);
  plans_.Add(NameOf(graph, rules), winner ? PlanOf(*winner) : kSeparatePlan);
  return winner;
}

CudnnDevice::Winner CudnnDevice::RaceWithSums(const ConvolutionGraph& graph,
                                              const EngineRules& rules,
                                              const ConvolutionAlgorithm& without) const {
  std::vector<ConvolutionPlan> plans;
  try {
    plans = FindPlans(target(), graph, rules, kTimedPlans);
  } catch (const Error& error) {
    if (error.exit_code() == EX_OSERR) throw;
    return std::nullopt;  // cuDNN has none, or does not know such graphs
  }
  std::vector<ConvolutionAlgorithm> candidates;
  std::size_t workspace_bytes = without.workspace_bytes();
  for (ConvolutionPlan& plan : plans) {
    workspace_bytes = std::max(workspace_bytes, plan.workspace_bytes());
    candidates.emplace_back(std::move(plan));
  }
  ConvolutionGraph alone = graph;
  alone.sums = false;
  const NormShape shape = NormShapeOf(graph);
  const TimingMemory memory(graph, workspace_bytes);
  const ScratchMemory partial(static_cast<std::size_t>(NormScratchFloats(shape)) * sizeof(float));
  const std::size_t fastest =
      FastestOf(candidates.size() + 1, [&](std::size_t i, cudaStream_t stream) {
        if (i < candidates.size()) return memory.Run(candidates[i], graph, handle(), stream);
        memory.Run(without, alone, handle(), stream);
        RunNormSums(shape, memory.dst.data(), static_cast<float*>(partial.data()), stream);
      });
  return fastest < candidates.size() ? candidates[fastest].plan_id() : std::nullopt;
}

}  // namespace trainer
