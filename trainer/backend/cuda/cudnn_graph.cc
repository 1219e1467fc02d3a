// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/cudnn_graph.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

#include "trainer/core/error.h"

namespace trainer {
namespace {

// Names of the tensors in a graph.
constexpr std::int64_t kSrc = 1;
constexpr std::int64_t kFilter = 2;
constexpr std::int64_t kDst = 3;
constexpr std::int64_t kSum = 4;
constexpr std::int64_t kSquares = 5;
constexpr std::int64_t kFactor = 6;
constexpr std::int64_t kOffset = 7;
constexpr std::int64_t kScaled = 8;
constexpr std::int64_t kMoved = 9;
constexpr std::int64_t kRectified = 10;

// What takes a described device.  Before 9.8 nothing does, and DescribedDevice makes none.
#if CUDNN_VERSION >= 90800
constexpr auto kDescription = CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR;
constexpr auto kDescriptionJson = CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION;
constexpr auto kDeviceOfHeuristics = CUDNN_ATTR_ENGINEHEUR_DEVICEPROP;
constexpr auto kDeviceOfPlan = CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP;
#else
constexpr cudnnBackendDescriptorType_t kDescription{};
constexpr cudnnBackendAttributeName_t kDescriptionJson{}, kDeviceOfHeuristics{}, kDeviceOfPlan{};
#endif

// (outer, channels, height, width), channels last in memory.  A virtual one is never in memory.
CudnnDescriptor MakeTensor(std::int64_t id, DType dtype, std::int64_t outer, std::int64_t channels,
                           std::int64_t height, std::int64_t width, bool is_virtual = false) {
  CudnnDescriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id);
  tensor.Set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, CudnnType(dtype));
  tensor.Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, kTensorAlignment);
  tensor.Set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64,
             std::vector<std::int64_t>{outer, channels, height, width});
  tensor.Set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64,
             std::vector<std::int64_t>{height * width * channels, 1, width * channels, channels});
  tensor.Set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, is_virtual);
  tensor.Finalize();
  return tensor;
}

CudnnDescriptor MakeConvolutionDescriptor(const ConvolutionGraph& graph) {
  const std::vector<std::int64_t> padding(2, graph.padding);
  CudnnDescriptor convolution(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  convolution.Set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, std::int64_t{2});
  convolution.Set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  convolution.Set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
                  CUDNN_CROSS_CORRELATION);
  convolution.Set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, padding);
  convolution.Set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, padding);
  convolution.Set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64,
                  std::vector<std::int64_t>(2, graph.stride));
  convolution.Set(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64,
                  std::vector<std::int64_t>(2, 1));
  convolution.Finalize();
  return convolution;
}

// The attributes of one pass; each pass has its own names for the same things.
struct PassAttributes {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t convolution, src, filter, dst, alpha, beta;
};

PassAttributes AttributesOf(ConvolutionPass pass) {
  switch (pass) {
    case ConvolutionPass::kForward:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case ConvolutionPass::kBackwardData:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case ConvolutionPass::kBackwardFilter:
      break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
}

CudnnDescriptor MakeSums(const ConvolutionGraph& graph, const CudnnDescriptor& dst) {
  const auto per_filter = [&](std::int64_t id) {
    return MakeTensor(id, DType::kFloat32, 1, graph.filters, 1, 1);
  };
  CudnnDescriptor sums(CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR);
  sums.Set(CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_TYPE_GENSTATS_MODE, CUDNN_GENSTATS_SUM_SQSUM);
  sums.Set(CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  sums.Set(CUDNN_ATTR_OPERATION_GENSTATS_XDESC, dst);
  sums.Set(CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, per_filter(kSum));
  sums.Set(CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, per_filter(kSquares));
  sums.Finalize();
  return sums;
}

// dst[i] = src[i] mode other[i], computed in fp32; the ReLU has no `other`.
CudnnDescriptor MakePointwise(cudnnPointwiseMode_t mode, const CudnnDescriptor& src,
                              const CudnnDescriptor* other, const CudnnDescriptor& dst) {
  CudnnDescriptor pointwise(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  pointwise.Set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
  pointwise.Set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  pointwise.Finalize();
  CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, pointwise);
  operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, src);
  if (other != nullptr) operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *other);
  operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, dst);
  operation.Finalize();
  return operation;
}

// What the convolution reads, where it applies a batch norm and ReLU to `src`: appended to
// `operations` is how it comes about, in the form that the engines of Ampere and Hopper have.
CudnnDescriptor ApplyNorm(const ConvolutionGraph& graph, const CudnnDescriptor& src,
                          std::vector<CudnnDescriptor>& operations) {
  const auto per_channel = [&](std::int64_t id) {
    return MakeTensor(id, graph.dtype, 1, graph.channels, 1, 1);
  };
  const auto on_the_way = [&](std::int64_t id) {
    return MakeTensor(id, DType::kFloat32, graph.images, graph.channels, graph.height, graph.width,
                      /*is_virtual=*/true);
  };
  const CudnnDescriptor factor = per_channel(kFactor);
  const CudnnDescriptor offset = per_channel(kOffset);
  const CudnnDescriptor scaled = on_the_way(kScaled);
  const CudnnDescriptor moved = on_the_way(kMoved);
  CudnnDescriptor rectified = on_the_way(kRectified);
  operations.push_back(MakePointwise(CUDNN_POINTWISE_MUL, src, &factor, scaled));
  operations.push_back(MakePointwise(CUDNN_POINTWISE_ADD, scaled, &offset, moved));
  operations.push_back(MakePointwise(CUDNN_POINTWISE_RELU_FWD, moved, nullptr, rectified));
  return rectified;
}

CudnnDescriptor MakeOperationGraph(const CudnnTarget& target, const ConvolutionGraph& graph) {
  DDL_CHECK(!graph.applies_norm || graph.pass != ConvolutionPass::kBackwardData);
  const PassAttributes names = AttributesOf(graph.pass);
  std::vector<CudnnDescriptor> all;
  const CudnnDescriptor src =
      MakeTensor(kSrc, graph.dtype, graph.images, graph.channels, graph.height, graph.width);
  CudnnDescriptor operation(names.operation);
  operation.Set(names.convolution, MakeConvolutionDescriptor(graph));
  if (graph.applies_norm) {
    operation.Set(names.src, ApplyNorm(graph, src, all));
  } else {
    operation.Set(names.src, src);
  }
  operation.Set(names.filter, MakeTensor(kFilter, graph.dtype, graph.filters, graph.channels,
                                         graph.kernel, graph.kernel));
  const CudnnDescriptor dst = MakeTensor(kDst, graph.dtype, graph.images, graph.filters,
                                         graph.dst_height(), graph.dst_width());
  operation.Set(names.dst, dst);
  operation.Set(names.alpha, CUDNN_TYPE_FLOAT, 1.0F);
  operation.Set(names.beta, CUDNN_TYPE_FLOAT, graph.adds ? 1.0F : 0.0F);
  operation.Finalize();
  all.push_back(std::move(operation));
  if (graph.sums) all.push_back(MakeSums(graph, dst));

  CudnnDescriptor operations(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  operations.Set(CUDNN_ATTR_OPERATIONGRAPH_OPS, all);
  if (!target.device) {
    operations.Set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, target.handle);
  }
  operations.Finalize();
  return operations;
}

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
  PlanId id;
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
std::optional<ConvolutionPlan> BuildPlan(const CudnnTarget& target, const ConvolutionGraph& graph,
                                         const Candidate& candidate, std::size_t workspace_limit) {
  CudnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, *candidate.config);
  if (target.device) {
    plan.Set(kDeviceOfPlan, *target.device);
  } else {
    plan.Set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, target.handle);
  }
  // The heuristics may recommend what then turns out not to fit this device.
  if (plan.TryFinalize() != CUDNN_STATUS_SUCCESS) return std::nullopt;
  ConvolutionPlan built(std::move(plan), candidate.id, candidate.tensor_cores, graph);
  if (built.workspace_bytes() > workspace_limit) return std::nullopt;
  return built;
}

}  // namespace

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
         (graph.applies_norm ? ", of a batch norm" : "") + (graph.sums ? ", with sums" : "");
}

std::string PlanOf(const PlanId& id) {
  return "cudnn " + std::to_string(id.mode) + " " + std::to_string(id.number) + " " +
         std::to_string(id.engine);
}

std::optional<PlanId> PlanIdOf(const std::string& plan) {
  std::istringstream words(plan);
  std::string library;
  int mode = 0;
  PlanId id;
  if (!(words >> library >> mode >> id.number >> id.engine) || library != "cudnn") {
    return std::nullopt;
  }
  id.mode = static_cast<cudnnBackendHeurMode_t>(mode);
  const bool is_whole = (words >> std::ws).eof();
  const bool is_known = id.mode == CUDNN_HEUR_MODE_A || id.mode == CUDNN_HEUR_MODE_FALLBACK;
  return is_whole && is_known ? std::optional(id) : std::nullopt;
}

CudnnTarget DescribedDevice(const std::string& json) {
  if (!kDevicesCanBeDescribed) {
    throw Error(EX_UNAVAILABLE, "cuDNN before 9.8 cannot be asked without a GPU");
  }
  auto device = std::make_shared<CudnnDescriptor>(kDescription);
  device->Set(kDescriptionJson, CUDNN_TYPE_CHAR,
              std::vector<char>(json.c_str(), json.c_str() + json.size() + 1));
  device->Finalize();
  return {nullptr, std::move(device)};
}

ConvolutionPlan::ConvolutionPlan(CudnnDescriptor plan, const PlanId& id, bool tensor_cores,
                                 const ConvolutionGraph& graph)
    : plan_(std::move(plan)),
      id_(id),
      tensor_cores_(tensor_cores),
      sum_bytes_(static_cast<std::size_t>(graph.filters) * sizeof(float)),
      norm_bytes_(static_cast<std::size_t>(graph.channels) * SizeOf(graph.dtype)),
      workspace_bytes_(static_cast<std::size_t>(
          plan_.Get<std::int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1)
              .at(0))) {}

void ConvolutionPlan::Execute(cudnnHandle_t handle, const ConvolutionOperands& operands,
                              void* workspace) const {
  std::vector<std::int64_t> ids{kSrc, kFilter, kDst};
  std::vector<void*> pointers{operands.src, operands.filter, operands.dst};
  if (operands.sums != nullptr) {
    auto* const sums = static_cast<std::byte*>(operands.sums);
    ids.insert(ids.end(), {kSum, kSquares});
    pointers.insert(pointers.end(), {sums, sums + sum_bytes_});
  }
  if (operands.norm != nullptr) {
    auto* const factors = static_cast<std::byte*>(const_cast<void*>(operands.norm));
    ids.insert(ids.end(), {kFactor, kOffset});
    pointers.insert(pointers.end(), {factors, factors + norm_bytes_});
  }
  CudnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.Set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, ids);
  pack.Set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers);
  pack.Set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
  pack.Finalize();
  CheckCudnn(cudnnBackendExecute(handle, plan_.get(), pack.get()), "cuDNN: running a convolution");
}

std::vector<ConvolutionPlan> FindPlans(const CudnnTarget& target, const ConvolutionGraph& graph,
                                       const EngineRules& rules, std::size_t most) {
  const CudnnDescriptor operations = MakeOperationGraph(target, graph);
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    const std::vector<CudnnDescriptor> configs = RecommendedConfigs(target, operations, mode);
    std::vector<ConvolutionPlan> plans;
    for (const Candidate& candidate : UsableCandidates(configs, mode, graph.dtype, rules)) {
      if (plans.size() == most) break;
      auto plan = BuildPlan(target, graph, candidate, rules.workspace_limit);
      if (plan) plans.push_back(std::move(*plan));
    }
    if (!plans.empty()) return plans;
  }
  throw Error(EX_UNAVAILABLE, "cuDNN " + std::to_string(cudnnGetVersion()) +
                                  " has no engine on this GPU for the " + ToString(graph));
}

std::optional<ConvolutionPlan> FindPlanAgain(const CudnnTarget& target,
                                             const ConvolutionGraph& graph,
                                             const EngineRules& rules, const PlanId& id) {
  const CudnnDescriptor operations = MakeOperationGraph(target, graph);
  const std::vector<CudnnDescriptor> configs = RecommendedConfigs(target, operations, id.mode);
  const std::vector<Candidate> candidates = UsableCandidates(configs, id.mode, graph.dtype, rules);
  if (id.number >= candidates.size() || candidates[id.number].id != id) return std::nullopt;
  return BuildPlan(target, graph, candidates[id.number], rules.workspace_limit);
}

}  // namespace trainer
