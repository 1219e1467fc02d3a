// SPDX-License-Identifier: Apache-2.0
//
// What cuDNN's precompiled engines fuse with the 1x1 convolutions of a bottleneck, and ddltraind
// does by kernels of its own (decisions 0087, 0088): which is faster is asked of a GPU.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/backend/cuda/libraries/cudnn_api.h"
#include "trainer/core/dtype.h"

namespace trainer {

enum class Fusion : std::uint8_t {
  kForwardBehindNorm,      // scale, bias, addition, ReLU (written), convolution, genstats
  kForwardBehindDualNorm,  // the same behind two batch norms that are added
  kBackwardToNorm,      // data gradient, addition, backward of a ReLU over batch norm and addition,
                        // sums
  kBackwardToDualNorm,  // the same below two batch norms that are added
};
inline constexpr Fusion kFusions[] = {Fusion::kForwardBehindNorm, Fusion::kForwardBehindDualNorm,
                                      Fusion::kBackwardToNorm, Fusion::kBackwardToDualNorm};
std::string NameOf(Fusion fusion);

// A 1x1 convolution with a stride of 1.
struct FusedConvolution {
  Fusion fusion{};
  DType dtype = DType::kFloat16;
  std::int64_t images = 0, size = 0;  // size x size pixels each
  std::int64_t channels = 0, filters = 0;
};

// Those of ResNet-50 v1.5 in the two narrow places of a block: of each stage conv1 of the first
// block, conv3, conv1 of the others.
std::vector<FusedConvolution> ConvolutionsOfResNet50(Fusion fusion, std::int64_t images);

// As a graph of cuDNN's operations.  Its tensors in memory are called 1, 2 and so on.
class FusionGraph {
 public:
  explicit FusionGraph(const FusedConvolution& of);

  const std::vector<CudnnDescriptor>& operations() const { return operations_; }
  // Of each tensor in memory, in the order of their numbers.
  const std::vector<std::size_t>& tensor_bytes() const { return tensor_bytes_; }
  // That one run reads and writes: all of them once.
  std::size_t bytes() const;

 private:
  CudnnDescriptor InMemory(DType dtype, const TensorShape& shape);
  CudnnDescriptor Images(std::int64_t channels);
  CudnnDescriptor Vector(std::int64_t channels, DType dtype);
  CudnnDescriptor Virtual();  // of the size of src
  CudnnDescriptor Filter();
  NormTensors Norm();
  // dst[i] = a[i] mode b[i]; returns dst.
  CudnnDescriptor Append(cudnnPointwiseMode_t mode, const CudnnDescriptor& a,
                         const CudnnDescriptor& b);
  CudnnDescriptor AppendScaleBias(const CudnnDescriptor& src);
  CudnnDescriptor AppendNorm(const NormTensors& norm);
  void AppendBnBackwardWeights(const NormTensors& norm, const CudnnDescriptor& diff_dst);
  void AppendForward(bool is_dual);
  void AppendBackward(bool is_dual);

  const FusedConvolution of_;
  std::vector<CudnnDescriptor> operations_;
  std::vector<std::size_t> tensor_bytes_;
  std::int64_t virtuals_ = 0;
};

}  // namespace trainer
