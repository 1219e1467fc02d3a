// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/libraries/cudnn_api.h"

#include <algorithm>
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

CudnnDescriptor MakeTensor(std::int64_t id, DType dtype, const TensorShape& shape,
                           bool is_virtual) {
  const auto [outer, channels, height, width] = shape;
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

namespace {

CudnnDescriptor MakeConvolutionDescriptor(std::int64_t stride, std::int64_t padding) {
  CudnnDescriptor convolution(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  const auto both = [](std::int64_t value) { return std::vector<std::int64_t>(2, value); };
  convolution.Set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, std::int64_t{2});
  convolution.Set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  convolution.Set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
                  CUDNN_CROSS_CORRELATION);
  convolution.Set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, both(padding));
  convolution.Set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, both(padding));
  convolution.Set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, both(stride));
  convolution.Set(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, both(1));
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

CudnnDescriptor MakeMode(cudnnPointwiseMode_t mode) {
  CudnnDescriptor pointwise(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  pointwise.Set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
  pointwise.Set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  pointwise.Finalize();
  return pointwise;
}

}  // namespace

CudnnDescriptor MakeConvolution(ConvolutionPass pass, std::int64_t stride, std::int64_t padding,
                                const ConvolutionTensors& tensors, bool adds) {
  const PassAttributes names = AttributesOf(pass);
  CudnnDescriptor operation(names.operation);
  operation.Set(names.convolution, MakeConvolutionDescriptor(stride, padding));
  operation.Set(names.src, tensors.src);
  operation.Set(names.filter, tensors.filter);
  operation.Set(names.dst, tensors.dst);
  operation.Set(names.alpha, CUDNN_TYPE_FLOAT, 1.0F);
  operation.Set(names.beta, CUDNN_TYPE_FLOAT, adds ? 1.0F : 0.0F);
  operation.Finalize();
  return operation;
}

CudnnDescriptor MakeGenStats(const CudnnDescriptor& src, const CudnnDescriptor& sum,
                             const CudnnDescriptor& squares) {
  CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR);
  operation.Set(CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_TYPE_GENSTATS_MODE,
                CUDNN_GENSTATS_SUM_SQSUM);
  operation.Set(CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  operation.Set(CUDNN_ATTR_OPERATION_GENSTATS_XDESC, src);
  operation.Set(CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, sum);
  operation.Set(CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, squares);
  operation.Finalize();
  return operation;
}

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

CudnnDescriptor MakeRelu(const CudnnDescriptor& src, const CudnnDescriptor& dst) {
  CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, MakeMode(CUDNN_POINTWISE_RELU_FWD));
  operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, src);
  operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, dst);
  operation.Finalize();
  return operation;
}

CudnnDescriptor MakeReluBackward(const CudnnDescriptor& src, const CudnnDescriptor& diff_dst,
                                 const CudnnDescriptor& diff_src) {
  CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, MakeMode(CUDNN_POINTWISE_RELU_BWD));
  operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, src);
  operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, diff_dst);
  operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, diff_src);
  operation.Finalize();
  return operation;
}

CudnnDescriptor MakeBnBackwardWeights(
    const NormTensors& norm, const CudnnDescriptor& diff_dst,
    const std::array<CudnnDescriptor, kGradientSumArrays>& gradients) {
  CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR);
  operation.Set(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MATH_PREC, CUDNN_TYPE_DATA_TYPE,
                CUDNN_DATA_FLOAT);
  operation.Set(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_X_DESC, norm.src);
  operation.Set(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MEAN_DESC, norm.mean);
  operation.Set(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_INVSTD_DESC, norm.inverse);
  operation.Set(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_BN_SCALE_DESC, norm.scale);
  operation.Set(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DY_DESC, diff_dst);
  operation.Set(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_SCALE_DESC, gradients[0]);
  operation.Set(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_BIAS_DESC, gradients[1]);
  operation.Set(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC, gradients[2]);
  operation.Set(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_X_SCALE_DESC, gradients[3]);
  operation.Set(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_BIAS, gradients[4]);
  operation.Finalize();
  return operation;
}

CudnnDescriptor MakeGraph(const std::vector<CudnnDescriptor>& operations, cudnnHandle_t handle) {
  CudnnDescriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.Set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations);
  if (handle != nullptr) {
    graph.Set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle);
  }
  graph.Finalize();
  return graph;
}

namespace {

// What takes a described device.  Before 9.8 nothing does, and there is none.
#if CUDNN_VERSION >= 90800
constexpr auto kDeviceOfHeuristics = CUDNN_ATTR_ENGINEHEUR_DEVICEPROP;
constexpr auto kDeviceOfPlan = CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP;
#else
constexpr cudnnBackendAttributeName_t kDeviceOfHeuristics{}, kDeviceOfPlan{};
#endif

}  // namespace

std::vector<CudnnDescriptor> RecommendedConfigs(const CudnnTarget& target,
                                                const CudnnDescriptor& graph,
                                                cudnnBackendHeurMode_t mode) {
  CudnnDescriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.Set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristics.Set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (target.device) heuristics.Set(kDeviceOfHeuristics, *target.device);
  // Knowing nothing to recommend is no error: there is another mode to ask.
  if (heuristics.TryFinalize() != CUDNN_STATUS_SUCCESS) return {};
  return heuristics.GetDescriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                   CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
}

std::optional<CudnnDescriptor> MakePlan(const CudnnTarget& target, const CudnnDescriptor& config) {
  CudnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
  if (target.device) {
    plan.Set(kDeviceOfPlan, *target.device);
  } else {
    plan.Set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, target.handle);
  }
  if (plan.TryFinalize() != CUDNN_STATUS_SUCCESS) return std::nullopt;
  return plan;
}

std::size_t WorkspaceBytes(const CudnnDescriptor& plan) {
  return static_cast<std::size_t>(
      plan.Get<std::int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1).at(0));
}

void Execute(cudnnHandle_t handle, const CudnnDescriptor& plan, const TensorPointers& tensors,
             void* workspace) {
  CudnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.Set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, tensors.ids);
  pack.Set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, tensors.pointers);
  pack.Set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
  pack.Finalize();
  CheckCudnn(cudnnBackendExecute(handle, plan.get(), pack.get()), "cuDNN: running a convolution");
}

}  // namespace trainer
