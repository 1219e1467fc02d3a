// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/libraries/cudnn_graph.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

#include "trainer/backend/cuda/libraries/cudnn_operations.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

// What takes a described device.  Before 9.8 nothing does, and there is none.
#if CUDNN_VERSION >= 90800
constexpr auto kDeviceOfHeuristics = CUDNN_ATTR_ENGINEHEUR_DEVICEPROP;
constexpr auto kDeviceOfPlan = CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP;
#else
constexpr cudnnBackendAttributeName_t kDeviceOfHeuristics{}, kDeviceOfPlan{};
#endif

std::vector<CudnnDescriptor> RecommendedConfigs(const CudnnTarget& target,
                                                const CudnnDescriptor& operations,
                                                cudnnBackendHeurMode_t mode) {
  CudnnDescriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.Set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, operations);
  heuristics.Set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (target.device) heuristics.Set(kDeviceOfHeuristics, *target.device);
  // Knowing nothing to recommend is no error: there is another mode to ask.
  if (heuristics.TryFinalize() != CUDNN_STATUS_SUCCESS) return {};
  return heuristics.GetDescriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                   CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
}

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
  CudnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, *candidate.config);
  if (target.device) {
    plan.Set(kDeviceOfPlan, *target.device);
  } else {
    plan.Set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, target.handle);
  }
  // The heuristics may recommend what then turns out not to fit this device.
  if (plan.TryFinalize() != CUDNN_STATUS_SUCCESS) return std::nullopt;
  CudnnExecutionPlan built(std::move(plan), candidate.id, candidate.tensor_cores, graph);
  if (built.workspace_bytes() > workspace_limit) return std::nullopt;
  return built;
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
      workspace_bytes_(static_cast<std::size_t>(
          plan_.Get<std::int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1)
              .at(0))) {}

void CudnnExecutionPlan::Execute(cudnnHandle_t handle, const ConvolutionOperands& operands,
                                 void* workspace) const {
  const TensorPointers tensors = PointersOf(graph_, operands);
  CudnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.Set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, tensors.ids);
  pack.Set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, tensors.pointers);
  pack.Set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
  pack.Finalize();
  CheckCudnn(cudnnBackendExecute(handle, plan_.get(), pack.get()), "cuDNN: running a convolution");
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

}  // namespace trainer
