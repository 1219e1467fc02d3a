// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/cudnn_device.h"

#include <algorithm>
#include <functional>
#include <mutex>
#include <utility>

#include "trainer/backend/cuda/batch_norm_kernels.h"
#include "trainer/backend/cuda/convolution_product.h"
#include "trainer/backend/cuda/norm_timing.h"
#include "trainer/backend/cuda/runtime.h"
#include "trainer/backend/cuda/timing.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

// What is no plan of cuDNN, as a plan of PlanCache: the product of matrices, and passes for what a
// graph does beside the convolution.
constexpr const char* kProductPlan = "product";
constexpr const char* kSeparatePlan = "separate";
// How many of the engines that cuDNN recommends are timed.
constexpr std::size_t kTimedPlans = 24;

std::size_t BytesOf(const ConvolutionGraph& graph, std::int64_t elements) {
  return static_cast<std::size_t>(elements) * SizeOf(graph.dtype);
}

// Memory for one run of any pass of a convolution.
struct TimingMemory {
  ScratchMemory src, filter, dst, sums, norm, workspace;

  TimingMemory(const ConvolutionGraph& graph, std::size_t workspace_bytes)
      : src(BytesOf(graph, graph.images * graph.height * graph.width * graph.channels)),
        filter(BytesOf(graph, graph.filters * graph.kernel * graph.kernel * graph.channels)),
        dst(BytesOf(graph, graph.images * graph.dst_height() * graph.dst_width() * graph.filters)),
        sums(graph.sums ? 2 * static_cast<std::size_t>(graph.filters) * sizeof(float) : 0),
        norm(graph.applies_norm ? BytesOf(graph, 2 * graph.channels) : 0),
        workspace(workspace_bytes) {}

  // Queues one run of `algorithm` for a graph of that size.
  void Run(const ConvolutionAlgorithm& algorithm, const ConvolutionGraph& graph,
           cudnnHandle_t handle, cudaStream_t stream) const {
    RunOn(src.data(), algorithm, graph, handle, stream);
  }
  // The same with another src.
  void RunOn(void* other_src, const ConvolutionAlgorithm& algorithm, const ConvolutionGraph& graph,
             cudnnHandle_t handle, cudaStream_t stream) const {
    const ConvolutionOperands operands = {.src = other_src,
                                          .filter = filter.data(),
                                          .dst = dst.data(),
                                          .sums = graph.sums ? sums.data() : nullptr,
                                          .norm = graph.applies_norm ? norm.data() : nullptr};
    algorithm.Run(handle, graph.pass, operands, workspace.data(), stream);
    // The handle outlives the stream of the race.
    CheckCudnn(cudnnSetStream(handle, nullptr), "cuDNN: setting the stream");
  }
};

NormShape MakeNormShape(const ConvolutionGraph& graph, std::int64_t pixels, std::int64_t channels) {
  NormShape shape;
  shape.pixels = graph.images * pixels;
  shape.channels = shape.padded = static_cast<int>(channels);
  shape.dtype = graph.dtype;
  shape.multiprocessors = Multiprocessors();
  return shape;
}

// What `graph` reads, and its result, as the batch norms before and behind it see them.
NormShape NormShapeBefore(const ConvolutionGraph& graph) {
  return MakeNormShape(graph, graph.height * graph.width, graph.channels);
}
NormShape NormShapeBehind(const ConvolutionGraph& graph) {
  return MakeNormShape(graph, graph.dst_height() * graph.dst_width(), graph.filters);
}

std::size_t WorkspaceBytes(const std::vector<ConvolutionAlgorithm>& candidates) {
  std::size_t bytes = 0;
  for (const ConvolutionAlgorithm& candidate : candidates) {
    bytes = std::max(bytes, candidate.workspace_bytes());
  }
  return bytes;
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

void ConvolutionAlgorithm::Run(cudnnHandle_t handle, ConvolutionPass pass,
                               const ConvolutionOperands& operands, void* workspace,
                               cudaStream_t stream) const {
  if (plan_) {
    CheckCudnn(cudnnSetStream(handle, stream), "cuDNN: setting the stream");
    plan_->Execute(handle, operands, workspace);
  } else {
    DDL_CHECK(operands.sums == nullptr && operands.norm == nullptr);
    const ProductOperands matrices = OperandsOf(pass, operands.src, operands.filter, operands.dst);
    product_->Run(matrices.a, matrices.b, nullptr, matrices.d, workspace, stream);
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
  DDL_CHECK(!graph.sums && !graph.applies_norm);
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
  return ChooseFused(with_sums, rules, [&] { return RaceWithSums(with_sums, rules, without); });
}

std::optional<CudnnDevice::WithNorm> CudnnDevice::ChooseWithNorm(const ConvolutionGraph& graph,
                                                                 const EngineRules& rules) {
  // As above.  Engines of fp32 could round to TF32 without saying so.
  if (rules.deterministic || graph.dtype == DType::kFloat32) return std::nullopt;
  ConvolutionGraph filter = graph;
  filter.pass = ConvolutionPass::kBackwardFilter;
  const WithoutNorm without = {&Choose(graph, rules), ChooseWithSums(graph, rules),
                               &Choose(filter, rules)};
  filter.applies_norm = true;
  const ConvolutionAlgorithm* backward_filter =
      ChooseFused(filter, rules, [&] { return RaceFilterWithNorm(filter, rules); });
  if (backward_filter == nullptr) return std::nullopt;
  ConvolutionGraph with_norm = graph;
  with_norm.sums = with_norm.applies_norm = true;
  const ConvolutionAlgorithm* forward = ChooseFused(
      with_norm, rules, [&] { return RaceWithNorm(with_norm, rules, without, *backward_filter); });
  if (forward == nullptr) return std::nullopt;
  return WithNorm{forward, backward_filter};
}

const ConvolutionAlgorithm* CudnnDevice::ChooseFused(const ConvolutionGraph& graph,
                                                     const EngineRules& rules,
                                                     const std::function<Winner()>& race) {
  const Choice* choice = Known(graph, rules);
  if (choice == nullptr) {
    const Winner winner = WinnerInProcess(device_, graph, rules, [&] {
      if (const auto kept = plans_.Find(NameOf(graph, rules))) {
        const Winner of_earlier = PlanIdOf(*kept);
        if (*kept == kSeparatePlan || (of_earlier && Again(graph, rules, of_earlier))) {
          return of_earlier;
        }
      }
      const Winner of_race = race();
      plans_.Add(NameOf(graph, rules), of_race ? PlanOf(*of_race) : kSeparatePlan);
      return of_race;
    });
    choice = &choices_.emplace_back(
        Choice{graph, rules, winner ? Again(graph, rules, winner) : std::nullopt});
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
  const TimingMemory memory(graph, WorkspaceBytes(candidates));
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

// None if cuDNN has none, or does not know such graphs.
std::vector<ConvolutionAlgorithm> CudnnDevice::FusedCandidates(const ConvolutionGraph& graph,
                                                               const EngineRules& rules) const {
  std::vector<ConvolutionAlgorithm> candidates;
  try {
    for (ConvolutionPlan& plan : FindPlans(target(), graph, rules, kTimedPlans)) {
      candidates.emplace_back(std::move(plan));
    }
  } catch (const Error& error) {
    if (error.exit_code() == EX_OSERR) throw;
    candidates.clear();
  }
  return candidates;
}

CudnnDevice::Winner CudnnDevice::RaceWithSums(const ConvolutionGraph& graph,
                                              const EngineRules& rules,
                                              const ConvolutionAlgorithm& without) const {
  const std::vector<ConvolutionAlgorithm> candidates = FusedCandidates(graph, rules);
  if (candidates.empty()) return std::nullopt;
  ConvolutionGraph alone = graph;
  alone.sums = false;
  const NormShape shape = NormShapeBehind(graph);
  const TimingMemory memory(graph, std::max(WorkspaceBytes(candidates), without.workspace_bytes()));
  const ScratchMemory partial(static_cast<std::size_t>(NormScratchFloats(shape)) * sizeof(float));
  const std::size_t fastest =
      FastestOf(candidates.size() + 1, [&](std::size_t i, cudaStream_t stream) {
        if (i < candidates.size()) return memory.Run(candidates[i], graph, handle(), stream);
        memory.Run(without, alone, handle(), stream);
        RunNormSums(shape, memory.dst.data(), static_cast<float*>(partial.data()), stream);
      });
  return fastest < candidates.size() ? candidates[fastest].plan_id() : std::nullopt;
}

// The fastest of those that apply the norm: whether they are worth it shows in RaceWithNorm.
CudnnDevice::Winner CudnnDevice::RaceFilterWithNorm(const ConvolutionGraph& graph,
                                                    const EngineRules& rules) const {
  const std::vector<ConvolutionAlgorithm> candidates = FusedCandidates(graph, rules);
  if (candidates.empty()) return std::nullopt;
  try {
    return candidates[Fastest(graph, candidates)].plan_id();
  } catch (const Error& error) {
    if (error.exit_code() != EX_UNAVAILABLE) throw;
    return std::nullopt;  // none of them runs
  }
}

// All that is done once for each batch with one side or the other: forward what goes through the
// norm, and backward the filter.
CudnnDevice::Winner CudnnDevice::RaceWithNorm(const ConvolutionGraph& graph,
                                              const EngineRules& rules, const WithoutNorm& without,
                                              const ConvolutionAlgorithm& backward_filter) const {
  const std::vector<ConvolutionAlgorithm> candidates = FusedCandidates(graph, rules);
  if (candidates.empty()) return std::nullopt;
  std::size_t workspace_bytes = WorkspaceBytes(candidates);
  for (const ConvolutionAlgorithm* other :
       {without.forward, without.with_sums, without.backward_filter, &backward_filter}) {
    if (other != nullptr) workspace_bytes = std::max(workspace_bytes, other->workspace_bytes());
  }
  ConvolutionGraph filter = graph;
  filter.pass = ConvolutionPass::kBackwardFilter;
  filter.sums = false;
  ConvolutionGraph alone = graph;
  alone.applies_norm = false;
  alone.sums = without.with_sums != nullptr;
  ConvolutionGraph filter_alone = filter;
  filter_alone.applies_norm = false;
  const NormShape behind = NormShapeBehind(graph);
  const TimingMemory memory(graph, workspace_bytes);
  const NormTimingMemory norm({.shape = NormShapeBefore(graph), .has_mask = true});
  const ScratchMemory partial(static_cast<std::size_t>(NormScratchFloats(behind)) * sizeof(float));

  const auto with_norm = [&](const ConvolutionAlgorithm& forward, cudaStream_t stream) {
    norm.RunUnapplied(memory.norm.data(), stream);
    memory.Run(forward, graph, handle(), stream);
    memory.Run(backward_filter, filter, handle(), stream);
  };
  const auto with_passes = [&](const NormPace& pace, cudaStream_t stream) {
    void* const normed = norm.RunForward(pace, stream);
    memory.RunOn(normed, alone.sums ? *without.with_sums : *without.forward, alone, handle(),
                 stream);
    if (!alone.sums) {
      RunNormSums(behind, memory.dst.data(), static_cast<float*>(partial.data()), stream);
    }
    memory.RunOn(normed, *without.backward_filter, filter_alone, handle(), stream);
  };
  const std::size_t fastest =
      FastestOf(candidates.size() + kNormPaces.size(), [&](std::size_t i, cudaStream_t stream) {
        if (i < candidates.size()) return with_norm(candidates[i], stream);
        with_passes(kNormPaces[i - candidates.size()], stream);
      });
  return fastest < candidates.size() ? candidates[fastest].plan_id() : std::nullopt;
}

}  // namespace trainer
