// SPDX-License-Identifier: Apache-2.0
//
// The ops of the reference back end, each in the file of its name, and the view of a tensor that
// they share.  All tensors are fp32 row-major; any other is DDL_CHECKed when the op is made.

#pragma once

#include <memory>
#include <vector>

#include "trainer/backend/backend.h"
#include "trainer/backend/ops.h"
#include "trainer/core/error.h"

namespace trainer {

std::unique_ptr<InputTransform> MakeReferenceInputTransform(const Shape& images);
std::unique_ptr<Convolution> MakeReferenceConvolution(const ConvolutionSpec& spec);
std::unique_ptr<BatchNorm> MakeReferenceBatchNorm(const BatchNormSpec& spec);
std::unique_ptr<MaxPool> MakeReferenceMaxPool(const MaxPoolSpec& spec);
std::unique_ptr<GlobalAveragePool> MakeReferenceGlobalAveragePool(const TensorDesc& src);
std::unique_ptr<Linear> MakeReferenceLinear(const LinearSpec& spec);
std::unique_ptr<SoftmaxCrossEntropy> MakeReferenceSoftmaxCrossEntropy(
    const SoftmaxCrossEntropySpec& spec);
std::unique_ptr<Optimizer> MakeReferenceOptimizer(OptimizerKind kind,
                                                  std::vector<ParameterSegment> segments);

// A four-dimensional tensor that reads as in the formulas: src(n, c, h, w).
class TensorView {
 public:
  explicit TensorView(const Tensor& tensor)
      : data_(tensor.As<float>()),
        row_(tensor.desc.shape[3]),
        channel_(row_ * tensor.desc.shape[2]),
        image_(channel_ * tensor.desc.shape[1]) {}

  float& operator()(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) const {
    return data_[n * image_ + c * channel_ + h * row_ + w];
  }

 private:
  float* data_;
  // Values of one.
  std::int64_t row_;
  std::int64_t channel_;
  std::int64_t image_;
};

// Calls visit(n, c, h, w) for every index of a four-dimensional shape, the last fastest.
template <typename Visit>
void ForEach(const Shape& shape, const Visit& visit) {
  for (std::int64_t n = 0; n < shape[0]; ++n) {
    for (std::int64_t c = 0; c < shape[1]; ++c) {
      for (std::int64_t h = 0; h < shape[2]; ++h) {
        for (std::int64_t w = 0; w < shape[3]; ++w) visit(n, c, h, w);
      }
    }
  }
}

inline void CheckRowMajor(const TensorDesc& desc, int rank) {
  DDL_CHECK(desc.layout == Layout::kRowMajor);
  DDL_CHECK(desc.dtype == DType::kFloat32);
  DDL_CHECK(desc.shape.rank() == rank);
  DDL_CHECK(desc.shape.elements() > 0);
}

// The reference back end: the definitions of backend/ops.h as naive loops over fp32 row-major
// tensors, with sums in double.  It is for reading and for tests; nothing in it is fast.

std::unique_ptr<Backend> MakeReferenceBackend();

}  // namespace trainer
