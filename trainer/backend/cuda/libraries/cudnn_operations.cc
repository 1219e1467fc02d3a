// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/libraries/cudnn_operations.h"

#include <cstddef>
#include <tuple>
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
    add(kMaskFromInput, 1, operands.relu_mask, 0);
    add(kStatistics, 4, operands.statistics, channels * sizeof(float));
    add(kGradientSums, kGradientSumArrays, operands.sums, channels * sizeof(float));
  }
  return all;
}

}  // namespace trainer
