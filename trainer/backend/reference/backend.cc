// SPDX-License-Identifier: Apache-2.0

#include <cstring>
#include <utility>

#include "trainer/backend/host_backend.h"
#include "trainer/backend/reference/reference_ops.h"

namespace trainer {
namespace {

class ReferenceBackend final : public HostBackend {
 public:
  std::string name() const override { return "reference"; }
  std::string description() const override { return "reference: " + arithmetic() + ", one thread"; }
  std::string arithmetic() const override { return "naive loops, fp32"; }
  DType compute_type() const override { return DType::kFloat32; }

  void Import(const float* src, const Tensor& dst, Stream& /*stream*/) override {
    std::memcpy(dst.data, src, dst.desc.bytes);
  }
  void Export(const Tensor& src, float* dst, Stream& /*stream*/) override {
    std::memcpy(dst, src.data, src.desc.bytes);
  }

  std::unique_ptr<InputTransform> MakeInputTransform(const Shape& images) override {
    return MakeReferenceInputTransform(images);
  }
  std::unique_ptr<Convolution> MakeConvolution(const ConvolutionSpec& spec) override {
    return MakeReferenceConvolution(spec);
  }
  std::unique_ptr<BatchNorm> MakeBatchNorm(const BatchNormSpec& spec) override {
    return MakeReferenceBatchNorm(spec);
  }
  std::unique_ptr<MaxPool> MakeMaxPool(const MaxPoolSpec& spec) override {
    return MakeReferenceMaxPool(spec);
  }
  std::unique_ptr<GlobalAveragePool> MakeGlobalAveragePool(const TensorDesc& src) override {
    return MakeReferenceGlobalAveragePool(src);
  }
  std::unique_ptr<Linear> MakeLinear(const LinearSpec& spec) override {
    return MakeReferenceLinear(spec);
  }
  std::unique_ptr<SoftmaxCrossEntropy> MakeSoftmaxCrossEntropy(
      const SoftmaxCrossEntropySpec& spec) override {
    return MakeReferenceSoftmaxCrossEntropy(spec);
  }
  std::unique_ptr<Optimizer> MakeOptimizer(OptimizerKind kind,
                                           std::vector<ParameterSegment> segments) override {
    return MakeReferenceOptimizer(kind, std::move(segments));
  }
};

}  // namespace

std::unique_ptr<Backend> MakeReferenceBackend() { return std::make_unique<ReferenceBackend>(); }

}  // namespace trainer
