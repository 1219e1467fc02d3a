// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/libraries/cudnn_graph.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <sstream>
#include <utility>

#include "trainer/core/error.h"

namespace trainer {

std::string ToString(const ConvolutionGraph& graph) {
  const char* const pass = graph.pass == ConvolutionPass::kForward        ? "forward"
                           : graph.pass == ConvolutionPass::kBackwardData ? "backward data"
                                                                          : "backward filter";
  return std::string(pass) + " of a convolution " + std::to_string(graph.images) + "x" +
         std::to_string(graph.channels) + "x" + std::to_string(graph.height) + "x" +
         std::to_string(graph.width) + " to " + std::to_string(graph.filters) +
         " channels, kernel " + std::to_string(graph.kernel) + ", stride " +
         std::to_string(graph.stride) + ", padding " + std::to_string(graph.padding) + ", " +
         std::string(NameOf(graph.dtype)) + (graph.adds ? ", added to what is there" : "") +
         (graph.sums ? ", with sums" : "") + (graph.masked ? ", before a ReLU, with sums" : "");
}

namespace {

using Notes = std::vector<cudnnBackendNumericalNote_t>;

bool MayBeUsed(const Notes& notes, DType dtype, const EngineRules& rules) {
  return std::none_of(notes.begin(), notes.end(), [&](cudnnBackendNumericalNote_t note) {
    switch (note) {
      case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
        return dtype == DType::kFloat32 && !rules.tf32;
      case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
        return rules.deterministic;
      case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
      case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13:
        return true;
      default:
        return false;
    }
  });
}

struct Candidate {
  const CudnnDescriptor* config;
  EngineConfigId id;
  bool tensor_cores;
};

// The configurations that may be used, in their order, but those of an engine that already has
// kOfOneEngine go to the end: heuristics can recommend dozens that hardly differ.
std::vector<Candidate> UsableCandidates(const std::vector<CudnnDescriptor>& configs,
                                        cudnnBackendHeurMode_t mode, DType dtype,
                                        const EngineRules& rules) {
  constexpr int kOfOneEngine = 3;
  std::vector<Candidate> first;
  std::vector<Candidate> rest;
  std::map<std::int64_t, int> of_engine;
  for (const CudnnDescriptor& config : configs) {
    const std::vector<CudnnDescriptor> engines =
        config.GetDescriptors(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    const auto notes = engines.at(0).Get<cudnnBackendNumericalNote_t>(
        CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
        CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
    if (!MayBeUsed(notes, dtype, rules)) continue;
    const bool tensor_cores =
        std::find(notes.begin(), notes.end(), CUDNN_NUMERICAL_NOTE_TENSOR_CORE) != notes.end();
    const std::int64_t engine =
        engines[0].Get<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1).at(0);
    (of_engine[engine]++ < kOfOneEngine ? first : rest)
        .push_back({&config, {mode, 0, engine}, tensor_cores});
  }
  first.insert(first.end(), rest.begin(), rest.end());
  for (std::size_t i = 0; i < first.size(); ++i) first[i].id.number = i;
  return first;
}

// None if cuDNN cannot build it, or it needs more memory than it may.
std::optional<CudnnExecutionPlan> BuildPlan(const CudnnTarget& target,
                                            const ConvolutionGraph& graph,
                                            const Candidate& candidate,
                                            std::size_t workspace_limit) {
  auto plan = MakePlan(target, *candidate.config);
  if (!plan || WorkspaceBytes(*plan) > workspace_limit) return std::nullopt;
  return CudnnExecutionPlan(std::move(*plan), candidate.id, candidate.tensor_cores, graph);
}

}  // namespace

std::string PlanOf(const EngineConfigId& id) {
  return "cudnn " + std::to_string(id.mode) + " " + std::to_string(id.number) + " " +
         std::to_string(id.engine);
}

std::optional<EngineConfigId> EngineConfigIdOf(const std::string& plan) {
  std::istringstream words(plan);
  std::string library;
  int mode = 0;
  EngineConfigId id;
  if (!(words >> library >> mode >> id.number >> id.engine) || library != "cudnn") {
    return std::nullopt;
  }
  id.mode = static_cast<cudnnBackendHeurMode_t>(mode);
  const bool is_whole = (words >> std::ws).eof();
  const bool is_known = id.mode == CUDNN_HEUR_MODE_A || id.mode == CUDNN_HEUR_MODE_FALLBACK;
  return is_whole && is_known ? std::optional(id) : std::nullopt;
}

CudnnExecutionPlan::CudnnExecutionPlan(CudnnDescriptor plan, const EngineConfigId& id,
                                       bool tensor_cores, const ConvolutionGraph& graph)
    : plan_(std::move(plan)),
      id_(id),
      tensor_cores_(tensor_cores),
      graph_(graph),
      workspace_bytes_(WorkspaceBytes(plan_)) {}

void CudnnExecutionPlan::Execute(cudnnHandle_t handle, const ConvolutionOperands& operands,
                                 void* workspace) const {
  trainer::Execute(handle, plan_, PointersOf(graph_, operands), workspace);
}

std::vector<CudnnExecutionPlan> FindPlans(const CudnnTarget& target, const ConvolutionGraph& graph,
                                          const EngineRules& rules, std::size_t max) {
  const CudnnDescriptor operations = MakeOperationGraph(graph, target.handle);
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    const std::vector<CudnnDescriptor> configs = RecommendedConfigs(target, operations, mode);
    std::vector<CudnnExecutionPlan> plans;
    for (const Candidate& candidate : UsableCandidates(configs, mode, graph.dtype, rules)) {
      if (plans.size() == max) break;
      auto plan = BuildPlan(target, graph, candidate, rules.workspace_limit);
      if (plan) plans.push_back(std::move(*plan));
    }
    if (!plans.empty()) return plans;
  }
  throw Error(EX_UNAVAILABLE, "cuDNN " + std::to_string(cudnnGetVersion()) +
                                  " has no engine on this GPU for the " + ToString(graph));
}

std::optional<CudnnExecutionPlan> FindPlanAgain(const CudnnTarget& target,
                                                const ConvolutionGraph& graph,
                                                const EngineRules& rules,
                                                const EngineConfigId& id) {
  const CudnnDescriptor operations = MakeOperationGraph(graph, target.handle);
  const std::vector<CudnnDescriptor> configs = RecommendedConfigs(target, operations, id.mode);
  const std::vector<Candidate> candidates = UsableCandidates(configs, id.mode, graph.dtype, rules);
  if (id.number >= candidates.size() || candidates[id.number].id != id) return std::nullopt;
  return BuildPlan(target, graph, candidates[id.number], rules.workspace_limit);
}

namespace {

// Names of the tensors in a graph.
constexpr std::int64_t kSrc = 1;
constexpr std::int64_t kFilter = 2;
constexpr std::int64_t kDst = 3;
constexpr std::int64_t kSum = 4;
constexpr std::int64_t kSquares = 5;
constexpr std::int64_t kMaskFromInput = 6;
constexpr std::int64_t kStatistics = 7;     // the first of four
constexpr std::int64_t kMaskOnTheFly = 11;  // the first of four
constexpr std::int64_t kUnmasked = 15;
constexpr std::int64_t kGradientSums = 16;  // the first of kGradientSumArrays

TensorShape ImagesOf(const ConvolutionGraph& graph) {
  return {graph.images, graph.channels, graph.height, graph.width};
}

CudnnDescriptor MakeVector(std::int64_t id, std::int64_t channels) {
  return MakeTensor(id, DType::kFloat32, {.channels = channels});
}

// What goes back through the ReLU over the batch norm before the convolution, and its sums, in the
// form that the engines of Ampere and Hopper have: the batch norm is computed again, in four steps.
// `unmasked` is what the convolution gives, `masked` where the result goes.
void AppendReluMask(const ConvolutionGraph& graph, const CudnnDescriptor& unmasked,
                    const CudnnDescriptor& masked, std::vector<CudnnDescriptor>& operations) {
  const auto per_channel = [&](std::int64_t id) { return MakeVector(id, graph.channels); };
  const auto step = [&](std::int64_t i) {
    return MakeTensor(kMaskOnTheFly + i, DType::kFloat32, ImagesOf(graph), /*is_virtual=*/true);
  };
  const NormTensors norm = {MakeTensor(kMaskFromInput, graph.dtype, ImagesOf(graph)),
                            per_channel(kStatistics), per_channel(kStatistics + 1),
                            per_channel(kStatistics + 2), per_channel(kStatistics + 3)};
  const std::array steps = {step(0), step(1), step(2), step(3)};
  operations.push_back(MakePointwise(CUDNN_POINTWISE_SUB, norm.src, norm.mean, steps[0]));
  operations.push_back(MakePointwise(CUDNN_POINTWISE_MUL, steps[0], norm.inverse, steps[1]));
  operations.push_back(MakePointwise(CUDNN_POINTWISE_MUL, steps[1], norm.scale, steps[2]));
  operations.push_back(MakePointwise(CUDNN_POINTWISE_ADD, steps[2], norm.shift, steps[3]));
  operations.push_back(MakeReluBackward(steps[3], unmasked, masked));
  operations.push_back(MakeBnBackwardWeights(
      norm, masked,
      {per_channel(kGradientSums), per_channel(kGradientSums + 1), per_channel(kGradientSums + 2),
       per_channel(kGradientSums + 3), per_channel(kGradientSums + 4)}));
}

}  // namespace

CudnnDescriptor MakeOperationGraph(const ConvolutionGraph& graph, cudnnHandle_t handle) {
  DDL_CHECK(!graph.masked || (graph.pass == ConvolutionPass::kBackwardData && !graph.adds));
  const CudnnDescriptor src = MakeTensor(kSrc, graph.dtype, ImagesOf(graph));
  const CudnnDescriptor filter =
      MakeTensor(kFilter, graph.dtype, {graph.filters, graph.channels, graph.kernel, graph.kernel});
  const CudnnDescriptor dst = MakeTensor(
      kDst, graph.dtype, {graph.images, graph.filters, graph.dst_height(), graph.dst_width()});
  const CudnnDescriptor unmasked =
      MakeTensor(kUnmasked, DType::kFloat32, ImagesOf(graph), /*is_virtual=*/true);
  std::vector<CudnnDescriptor> operations;
  operations.push_back(MakeConvolution(graph.pass, graph.stride, graph.padding,
                                       {graph.masked ? unmasked : src, filter, dst}, graph.adds));
  if (graph.sums) {
    operations.push_back(
        MakeGenStats(dst, MakeVector(kSum, graph.filters), MakeVector(kSquares, graph.filters)));
  }
  if (graph.masked) AppendReluMask(graph, unmasked, src, operations);
  return MakeGraph(operations, handle);
}

TensorPointers PointersOf(const ConvolutionGraph& graph, const ConvolutionOperands& operands) {
  TensorPointers all = {{kSrc, kFilter, kDst}, {operands.src, operands.filter, operands.dst}};
  const auto add = [&](std::int64_t first_id, int arrays, const void* first, std::size_t bytes) {
    auto* at = static_cast<std::byte*>(const_cast<void*>(first));
    for (int i = 0; i < arrays; ++i) {
      all.ids.push_back(first_id + i);
      all.pointers.push_back(at + i * bytes);
    }
  };
  const auto channels = static_cast<std::size_t>(graph.channels);
  const auto filters = static_cast<std::size_t>(graph.filters);
  if (graph.sums) add(kSum, 2, operands.sums, filters * sizeof(float));
  if (graph.masked) {
    add(kMaskFromInput, 1, operands.norm_src, 0);
    add(kStatistics, 4, operands.statistics, channels * sizeof(float));
    add(kGradientSums, kGradientSumArrays, operands.sums, channels * sizeof(float));
  }
  return all;
}

}  // namespace trainer
