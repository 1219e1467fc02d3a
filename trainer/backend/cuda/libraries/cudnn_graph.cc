// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/libraries/cudnn_graph.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <sstream>
#include <tuple>
#include <utility>

#include "trainer/backend/cuda/runtime/runtime.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

int ExitCodeOf(cudnnStatus_t status) {
  // From 9 on each kind of refusal has a number of its own.
  const bool rejected = status == CUDNN_STATUS_NOT_SUPPORTED ||
                        status == CUDNN_STATUS_NOT_INITIALIZED || (status >= 3000 && status < 4000);
  return rejected ? EX_UNAVAILABLE : EX_SOFTWARE;
}

// What cuDNN has to say about the last failure, in one line.
std::string LastText() {
#if CUDNN_VERSION >= 90000
  char text[512] = "";
  cudnnGetLastErrorString(text, sizeof text);
  std::string line(text);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line.empty() ? "" : " (" + line + ")";
#else
  return "";
#endif
}

}  // namespace

void CheckCudnn(cudnnStatus_t status, const std::string& action) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  CheckDevice(action);
  const std::string text = action + ": " + cudnnGetErrorString(status) + LastText();
  if (status == CUDNN_STATUS_ALLOC_FAILED) throw OutOfMemory(text);
  throw Error(ExitCodeOf(status), text);
}

cudnnDataType_t CudnnType(DType dtype) {
  DDL_CHECK(dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16);
  if (dtype == DType::kFloat16) return CUDNN_DATA_HALF;
  return dtype == DType::kBFloat16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

CudnnDescriptor::CudnnDescriptor(cudnnBackendDescriptorType_t type) {
  CheckCudnn(cudnnBackendCreateDescriptor(type, &descriptor_), "cuDNN: creating a descriptor");
}

CudnnDescriptor::~CudnnDescriptor() {
  if (descriptor_ != nullptr) cudnnBackendDestroyDescriptor(descriptor_);
}

CudnnDescriptor::CudnnDescriptor(CudnnDescriptor&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, nullptr)) {}

void CudnnDescriptor::Set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value) {
  const cudnnBackendDescriptor_t handle = value.get();
  SetArray(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &handle);
}

void CudnnDescriptor::Set(cudnnBackendAttributeName_t name,
                          const std::vector<CudnnDescriptor>& values) {
  std::vector<cudnnBackendDescriptor_t> handles;
  for (const CudnnDescriptor& value : values) handles.push_back(value.get());
  Set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, handles);
}

cudnnStatus_t CudnnDescriptor::TryFinalize() { return cudnnBackendFinalize(descriptor_); }

void CudnnDescriptor::Finalize() { CheckCudnn(TryFinalize(), "cuDNN: finalizing a descriptor"); }

std::vector<CudnnDescriptor> CudnnDescriptor::GetDescriptors(
    cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type) const {
  const std::int64_t max = GetArray(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr);
  std::vector<CudnnDescriptor> found;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (std::int64_t i = 0; i < max; ++i) handles.push_back(found.emplace_back(type).get());
  if (max == 0) return found;
  const std::int64_t count = GetArray(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, max, handles.data());
  while (std::cmp_greater(found.size(), count)) found.pop_back();
  return found;
}

void CudnnDescriptor::SetArray(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                               std::int64_t count, const void* values) {
  CheckCudnn(cudnnBackendSetAttribute(descriptor_, name, type, count, values),
             "cuDNN: setting attribute " + std::to_string(name));
}

std::int64_t CudnnDescriptor::GetArray(cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t max,
                                       void* values) const {
  std::int64_t count = 0;
  CheckCudnn(cudnnBackendGetAttribute(descriptor_, name, type, max, &count, values),
             "cuDNN: reading attribute " + std::to_string(name));
  return count;
}

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

// Computed in fp32.
CudnnDescriptor MakeMode(cudnnPointwiseMode_t mode) {
  CudnnDescriptor pointwise(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  pointwise.Set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
  pointwise.Set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  pointwise.Finalize();
  return pointwise;
}

// dst[i] = src[i] mode other[i].
CudnnDescriptor MakePointwise(cudnnPointwiseMode_t mode, const CudnnDescriptor& src,
                              const CudnnDescriptor& other, const CudnnDescriptor& dst) {
  CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, MakeMode(mode));
  operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, src);
  operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, other);
  operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, dst);
  operation.Finalize();
  return operation;
}

// What goes back through the ReLU over the batch norm before the convolution, and its sums, in the
// form that the engines of Ampere and Hopper have: the batch norm is computed again, in four steps.
// `unmasked` is what the convolution gives, `masked` where the result goes.
void AppendReluMask(const ConvolutionGraph& graph, const CudnnDescriptor& unmasked,
                    const CudnnDescriptor& masked, std::vector<CudnnDescriptor>& operations) {
  const auto per_channel = [&](std::int64_t id) {
    return MakeTensor(id, DType::kFloat32, 1, graph.channels, 1, 1);
  };
  const CudnnDescriptor input = MakeTensor(kMaskFromInput, graph.dtype, graph.images,
                                           graph.channels, graph.height, graph.width);
  std::vector<CudnnDescriptor> statistics;
  for (std::int64_t i = 0; i < 4; ++i) statistics.push_back(per_channel(kStatistics + i));
  const auto& [mean, inverse, scale, shift] =
      std::tie(statistics[0], statistics[1], statistics[2], statistics[3]);
  std::vector<CudnnDescriptor> steps;
  for (std::int64_t i = 0; i < 4; ++i) {
    steps.push_back(MakeTensor(kMaskOnTheFly + i, DType::kFloat32, graph.images, graph.channels,
                               graph.height, graph.width, /*is_virtual=*/true));
  }
  operations.push_back(MakePointwise(CUDNN_POINTWISE_SUB, input, mean, steps[0]));
  operations.push_back(MakePointwise(CUDNN_POINTWISE_MUL, steps[0], inverse, steps[1]));
  operations.push_back(MakePointwise(CUDNN_POINTWISE_MUL, steps[1], scale, steps[2]));
  operations.push_back(MakePointwise(CUDNN_POINTWISE_ADD, steps[2], shift, steps[3]));

  CudnnDescriptor relu(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  relu.Set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, MakeMode(CUDNN_POINTWISE_RELU_BWD));
  relu.Set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, steps[3]);
  relu.Set(CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, unmasked);
  relu.Set(CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, masked);
  relu.Finalize();
  operations.push_back(std::move(relu));

  CudnnDescriptor sums(CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR);
  sums.Set(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  sums.Set(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_X_DESC, input);
  sums.Set(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MEAN_DESC, mean);
  sums.Set(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_INVSTD_DESC, inverse);
  sums.Set(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_BN_SCALE_DESC, scale);
  sums.Set(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DY_DESC, masked);
  std::int64_t id = kGradientSums;
  for (const auto name : {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_SCALE_DESC,
                          CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_BIAS_DESC,
                          CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC,
                          CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_X_SCALE_DESC,
                          CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_BIAS}) {
    sums.Set(name, per_channel(id++));
  }
  sums.Finalize();
  operations.push_back(std::move(sums));
}

}  // namespace

CudnnDescriptor MakeOperationGraph(const ConvolutionGraph& graph, cudnnHandle_t handle) {
  DDL_CHECK(!graph.masked || (graph.pass == ConvolutionPass::kBackwardData && !graph.adds));
  const PassAttributes names = AttributesOf(graph.pass);
  std::vector<CudnnDescriptor> all;
  const CudnnDescriptor src =
      MakeTensor(kSrc, graph.dtype, graph.images, graph.channels, graph.height, graph.width);
  CudnnDescriptor operation(names.operation);
  operation.Set(names.convolution, MakeConvolutionDescriptor(graph));
  const CudnnDescriptor unmasked = MakeTensor(kUnmasked, DType::kFloat32, graph.images,
                                              graph.channels, graph.height, graph.width,
                                              /*is_virtual=*/true);
  operation.Set(names.src, graph.masked ? unmasked : src);
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
  if (graph.masked) AppendReluMask(graph, unmasked, src, all);

  CudnnDescriptor operations(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  operations.Set(CUDNN_ATTR_OPERATIONGRAPH_OPS, all);
  if (handle != nullptr) {
    operations.Set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle);
  }
  operations.Finalize();
  return operations;
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
