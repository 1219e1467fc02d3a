// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/libraries/cudnn_device.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <mutex>
#include <utility>

#include "trainer/backend/cuda/norms/batch_norm_kernels.h"
#include "trainer/backend/cuda/norms/norm_autotune.h"
#include "trainer/backend/cuda/runtime/runtime.h"
#include "trainer/backend/cuda/runtime/timing.h"
#include "trainer/core/error.h"

namespace trainer {

void ConvolutionAlgorithm::Run(cudnnHandle_t handle, ConvolutionPass pass,
                               const ConvolutionOperands& operands, void* workspace,
                               cudaStream_t stream) const {
  if (plan_) {
    CheckCudnn(cudnnSetStream(handle, stream), "cuDNN: setting the stream");
    plan_->Execute(handle, operands, workspace);
  } else {
    DDL_CHECK(operands.sums == nullptr && operands.norm_src == nullptr);
    const GemmOperands matrices = OperandsOf(pass, operands.src, operands.filter, operands.dst);
    product_->Run(matrices.a, matrices.b, nullptr, matrices.d, workspace, stream);
  }
}

namespace {

std::size_t BytesOf(const ConvolutionGraph& graph, std::int64_t elements) {
  return static_cast<std::size_t>(elements) * SizeOf(graph.dtype);
}

std::int64_t SrcElements(const ConvolutionGraph& graph) {
  return graph.images * graph.height * graph.width * graph.channels;
}

// Memory for one run of any pass of a convolution.
struct TimingMemory {
  ScratchMemory src, filter, dst, sums, norm_src, statistics, workspace;

  TimingMemory(const ConvolutionGraph& graph, std::size_t workspace_bytes)
      : src(BytesOf(graph, SrcElements(graph))),
        filter(BytesOf(graph, graph.filters * graph.kernel * graph.kernel * graph.channels)),
        dst(BytesOf(graph, graph.images * graph.dst_height() * graph.dst_width() * graph.filters)),
        sums(FloatBytes(graph.sums     ? 2 * graph.filters
                        : graph.masked ? kGradientSumArrays * graph.channels
                                       : 0)),
        norm_src(graph.masked ? BytesOf(graph, SrcElements(graph)) : 0),
        statistics(FloatBytes(graph.masked ? 4 * graph.channels : 0)),
        workspace(workspace_bytes) {}

  // Queues one run of `algorithm` for a graph of that size.
  void Run(const ConvolutionAlgorithm& algorithm, const ConvolutionGraph& graph,
           cudnnHandle_t handle, cudaStream_t stream) const {
    const ConvolutionOperands operands = {
        .src = src.data(),
        .filter = filter.data(),
        .dst = dst.data(),
        .sums = graph.sums || graph.masked ? sums.data() : nullptr,
        .norm_src = graph.masked ? norm_src.data() : nullptr,
        .statistics = static_cast<const float*>(statistics.data())};
    algorithm.Run(handle, graph.pass, operands, workspace.data(), stream);
    // The handle outlives the stream of the autotuning.
    CheckCudnn(cudnnSetStream(handle, nullptr), "cuDNN: setting the stream");
  }
};

NormShape MakeNormShape(const ConvolutionGraph& graph, std::int64_t pixels, std::int64_t channels) {
  NormShape shape;
  shape.pixels = graph.images * pixels;
  shape.channels = shape.padded = static_cast<int>(channels);
  shape.dtype = graph.dtype;
  shape.sms = SmCount();
  return shape;
}

// What `graph` reads, and its result, as the batch norms before and behind it see them.
NormShape NormShapeBefore(const ConvolutionGraph& graph) {
  return MakeNormShape(graph, graph.height * graph.width, graph.channels);
}
NormShape NextNormShape(const ConvolutionGraph& graph) {
  return MakeNormShape(graph, graph.dst_height() * graph.dst_width(), graph.filters);
}

std::size_t WorkspaceBytes(const std::vector<ConvolutionAlgorithm>& candidates) {
  std::size_t bytes = 0;
  for (const ConvolutionAlgorithm& candidate : candidates) {
    bytes = std::max(bytes, candidate.workspace_bytes());
  }
  return bytes;
}

std::optional<std::size_t> OneOf(const std::vector<ConvolutionAlgorithm>& candidates,
                                 std::size_t winner) {
  return winner < candidates.size() ? std::optional(winner) : std::nullopt;
}

}  // namespace

std::size_t Fastest(cudnnHandle_t handle, const ConvolutionGraph& graph,
                    const std::vector<ConvolutionAlgorithm>& candidates) {
  const TimingMemory memory(graph, WorkspaceBytes(candidates));
  try {
    return FastestOf(candidates.size(), [&](std::size_t i, cudaStream_t stream) {
      memory.Run(candidates[i], graph, handle, stream);
    });
  } catch (const Error& error) {
    if (error.exit_code() == EX_OSERR) throw;
    throw Error(EX_UNAVAILABLE,
                "no engine of cuDNN runs the " + ToString(graph) + ": " + error.what());
  }
}

std::optional<std::size_t> AutotuneWithBnStats(cudnnHandle_t handle, const ConvolutionGraph& graph,
                                               const std::vector<ConvolutionAlgorithm>& candidates,
                                               const ConvolutionAlgorithm& without) {
  ConvolutionGraph alone = graph;
  alone.sums = false;
  const NormShape shape = NextNormShape(graph);
  const TimingMemory memory(graph, std::max(WorkspaceBytes(candidates), without.workspace_bytes()));
  const ScratchMemory partial(FloatBytes(NormScratchFloats(shape)));
  return OneOf(candidates,
               FastestOf(candidates.size() + 1, [&](std::size_t i, cudaStream_t stream) {
                 if (i < candidates.size()) return memory.Run(candidates[i], graph, handle, stream);
                 memory.Run(without, alone, handle, stream);
                 RunNormSums(shape, memory.dst.data(), static_cast<float*>(partial.data()), stream);
               }));
}

std::optional<std::size_t> AutotuneDgradDrelu(cudnnHandle_t handle, const ConvolutionGraph& graph,
                                              const std::vector<ConvolutionAlgorithm>& candidates,
                                              const ConvolutionAlgorithm& unmasked) {
  ConvolutionGraph alone = graph;
  alone.masked = false;
  const TimingMemory memory(graph,
                            std::max(WorkspaceBytes(candidates), unmasked.workspace_bytes()));
  const NormTimingMemory norm({.shape = NormShapeBefore(graph), .has_mask = true});
  constexpr NormLaunchConfig kDepths[] = {{.depth = 1}, {.depth = 2}};
  return OneOf(candidates, FastestOf(candidates.size() + std::size(kDepths),
                                     [&](std::size_t i, cudaStream_t stream) {
                                       if (i < candidates.size())
                                         return memory.Run(candidates[i], graph, handle, stream);
                                       memory.Run(unmasked, alone, handle, stream);
                                       norm.RunBackwardSums(kDepths[i - candidates.size()], stream);
                                     }));
}

std::optional<MatmulSpec> GemmOf(const ConvolutionGraph& graph, const EngineRules& rules) {
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

GemmOperands OperandsOf(ConvolutionPass pass, void* src, void* filter, void* dst) {
  if (pass == ConvolutionPass::kForward) return {src, filter, dst};
  if (pass == ConvolutionPass::kBackwardData) return {dst, filter, src};
  return {dst, src, filter};
}

namespace {

// What is no plan of cuDNN, as a plan of PlanCache: the product of matrices, and passes for what a
// graph does beside the convolution.
constexpr const char* kGemmPlan = "product";
constexpr const char* kSeparatePlan = "separate";
// How many of the engines that cuDNN recommends are timed.
constexpr std::size_t kTimedPlans = 24;

std::string NameOf(const ConvolutionGraph& graph, const EngineRules& rules) {
  return ToString(graph) + (rules.tf32 ? ", TF32" : "");
}

using Winner = CudnnDevice::Winner;

// `autotune()` finds the winner for the graph on the device.  It runs once in this process: timing
// is slow, and so all back ends of the process compute alike.
Winner WinnerInProcess(int device, const ConvolutionGraph& graph, const EngineRules& rules,
                       const std::function<Winner()>& autotune) {
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
  return all.emplace_back(Known{device, graph, rules, autotune()}).winner;
}

}  // namespace

void CudnnDevice::Destroy::operator()(cudnnHandle_t handle) const {
  // The stream that it ran on last may be gone, so cuDNN shall not look at it.
  cudnnSetStream(handle, nullptr);
  cudnnDestroy(handle);
}

CudnnDevice::CudnnDevice(DevicePlanCache plans) : plans_(std::move(plans)) {
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
  DDL_CHECK(!graph.sums && !graph.masked);
  const Choice* choice = Known(graph, rules);
  if (choice == nullptr) choice = &choices_.emplace_back(Choice{graph, rules, Find(graph, rules)});
  return *choice->algorithm;
}

const ConvolutionAlgorithm* CudnnDevice::ChooseWithBnStats(const ConvolutionGraph& graph,
                                                           const EngineRules& rules) {
  // cuDNN does not say of an engine that gives sums whether its bits are the same each time.
  if (rules.deterministic) return nullptr;
  const ConvolutionAlgorithm& without = Choose(graph, rules);
  ConvolutionGraph with_bn_stats = graph;
  with_bn_stats.sums = true;
  return ChooseFused(with_bn_stats, rules, [&](const auto& candidates) {
    return AutotuneWithBnStats(handle(), with_bn_stats, candidates, without);
  });
}

const ConvolutionAlgorithm* CudnnDevice::ChooseDgradDrelu(const ConvolutionGraph& graph,
                                                          const EngineRules& rules) {
  // As above.  Those of fp32 could round to TF32 without saying so.
  if (rules.deterministic || graph.dtype != DType::kFloat16) return nullptr;
  ConvolutionGraph masked = graph;
  masked.pass = ConvolutionPass::kBackwardData;
  const ConvolutionAlgorithm& unmasked = Choose(masked, rules);
  masked.masked = true;
  return ChooseFused(masked, rules, [&](const auto& candidates) {
    return AutotuneDgradDrelu(handle(), masked, candidates, unmasked);
  });
}

const ConvolutionAlgorithm* CudnnDevice::ChooseFused(const ConvolutionGraph& graph,
                                                     const EngineRules& rules,
                                                     const FusedAutotune& autotune) {
  const Choice* choice = Known(graph, rules);
  if (choice == nullptr) {
    const Winner winner = WinnerInProcess(device_, graph, rules, [&] {
      if (const auto kept = plans_.Find(NameOf(graph, rules))) {
        const Winner of_earlier = EngineConfigIdOf(*kept);
        if (*kept == kSeparatePlan || (of_earlier && Again(graph, rules, of_earlier))) {
          return of_earlier;
        }
      }
      const Winner of_candidate = AutotuneFused(graph, rules, autotune);
      plans_.Add(NameOf(graph, rules), of_candidate ? PlanOf(*of_candidate) : kSeparatePlan);
      return of_candidate;
    });
    choice = &choices_.emplace_back(
        Choice{graph, rules, winner ? Again(graph, rules, winner) : std::nullopt});
  }
  return choice->algorithm ? &*choice->algorithm : nullptr;
}

CudnnDevice::Winner CudnnDevice::AutotuneFused(const ConvolutionGraph& graph,
                                               const EngineRules& rules,
                                               const FusedAutotune& autotune) const {
  std::vector<ConvolutionAlgorithm> candidates;
  try {
    for (CudnnExecutionPlan& plan : FindPlans(target(), graph, rules, kTimedPlans)) {
      candidates.emplace_back(std::move(plan));
    }
  } catch (const Error& error) {
    if (error.exit_code() == EX_OSERR) throw;
    return std::nullopt;  // cuDNN has none, or does not know such graphs
  }
  try {
    const std::optional<std::size_t> winner = autotune(candidates);
    return winner ? candidates[*winner].engine_config_id() : std::nullopt;
  } catch (const Error& error) {
    if (error.exit_code() != EX_UNAVAILABLE) throw;
    return std::nullopt;  // none of them runs
  }
}

// The winner in this process, made for this handle.
ConvolutionAlgorithm CudnnDevice::Find(const ConvolutionGraph& graph,
                                       const EngineRules& rules) const {
  std::optional<ConvolutionAlgorithm> own;  // where nobody in this process had asked before
  const Winner winner = WinnerInProcess(device_, graph, rules, [&] {
    auto kept = Kept(graph, rules);
    if (kept) return own.emplace(std::move(*kept)).engine_config_id();
    own.emplace(Autotune(graph, rules));
    if (!rules.deterministic) {
      plans_.Add(NameOf(graph, rules),
                 own->engine_config_id() ? PlanOf(*own->engine_config_id()) : kGemmPlan);
    }
    return own->engine_config_id();
  });
  if (own) return std::move(*own);
  auto again = Again(graph, rules, winner);
  if (again) return std::move(*again);
  return Autotune(graph, rules);  // cuDNN cannot build that one here any more
}

// None if it cannot be had any more.
std::optional<ConvolutionAlgorithm> CudnnDevice::Again(const ConvolutionGraph& graph,
                                                       const EngineRules& rules,
                                                       const Winner& winner) const {
  try {
    if (!winner) {
      const std::optional<MatmulSpec> product = GemmOf(graph, rules);
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
  const Winner winner = EngineConfigIdOf(*plan);
  if (!winner && *plan != kGemmPlan) return std::nullopt;
  return Again(graph, rules, winner);
}

ConvolutionAlgorithm CudnnDevice::Autotune(const ConvolutionGraph& graph,
                                           const EngineRules& rules) const {
  std::vector<ConvolutionAlgorithm> candidates = CandidatesFor(graph, rules);
  const std::size_t fastest = candidates.size() == 1 ? 0 : Fastest(handle(), graph, candidates);
  return std::move(candidates[fastest]);
}

std::vector<ConvolutionAlgorithm> CudnnDevice::CandidatesFor(const ConvolutionGraph& graph,
                                                             const EngineRules& rules) const {
  std::vector<ConvolutionAlgorithm> candidates;
  const std::size_t max = rules.deterministic ? 1 : kTimedPlans;
  for (CudnnExecutionPlan& plan : FindPlans(target(), graph, rules, max)) {
    candidates.emplace_back(std::move(plan));
  }
  const std::optional<MatmulSpec> product = GemmOf(graph, rules);
  if (!product || rules.deterministic) return candidates;
  try {
    candidates.emplace_back(*product, plans_);
  } catch (const Error& error) {
    if (error.exit_code() != EX_UNAVAILABLE) throw;  // cuBLASLt has none: cuDNN has
  }
  return candidates;
}

}  // namespace trainer
