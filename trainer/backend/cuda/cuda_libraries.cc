// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/cuda_libraries.h"

#include <cublasLt.h>
#include <cudnn.h>

#include <utility>

#include "trainer/backend/cuda/libraries/convolution.h"
#include "trainer/backend/cuda/libraries/linear.h"
#include "trainer/backend/cuda/norms/norm_paces.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

std::string Dotted(std::size_t version, std::size_t major_factor) {
  return std::to_string(version / major_factor) + "." +
         std::to_string(version % major_factor / 100) + "." + std::to_string(version % 100);
}

std::string Versions() {
  // cuDNN 8.9.7 is 8907, 9.19.0 is 91900.
  const std::size_t cudnn = cudnnGetVersion();
  return "cuDNN " + Dotted(cudnn, cudnn < 90000 ? 1000 : 10000) + ", cuBLASLt " +
         Dotted(cublasLtGetVersion(), 10000);
}

class Libraries final : public CudaLibraries {
 public:
  Libraries(const CudaPrecision& precision, bool deterministic, DevicePlans plans)
      : precision_(precision),
        deterministic_(deterministic),
        plans_(std::move(plans)),
        cudnn_(OpenCudnnDevice(plans_)),
        norm_paces_(plans_),
        stem_ways_(plans_) {}

  std::string versions() const override { return Versions(); }

  std::unique_ptr<Convolution> MakeConvolution(const ConvolutionSpec& spec) override {
    DDL_CHECK(spec.src.dtype == precision_.storage);
    return MakeCudnnConvolution(cudnn_, {.tf32 = precision_.tf32, .deterministic = deterministic_},
                                spec);
  }

  std::unique_ptr<Linear> MakeLinear(const LinearSpec& spec) override {
    DDL_CHECK(spec.src.dtype == precision_.storage);
    return MakeCublasLinear(spec, precision_.tf32, deterministic_, plans_);
  }

  NormPace ForwardPace(const NormSize& size) override { return norm_paces_.Forward(size); }
  NormPace BackwardPace(const NormSize& size) override { return norm_paces_.Backward(size); }

  StemWay FasterStem(Convolution& convolution, const StemSize& size) override {
    if (deterministic_ || !HasStemPasses(size)) return StemWay::kStored;
    return stem_ways_.Choose(convolution, size);
  }

 private:
  CudaPrecision precision_;
  bool deterministic_;
  DevicePlans plans_;
  std::shared_ptr<CudnnDevice> cudnn_;
  NormPaces norm_paces_;
  StemWays stem_ways_;
};

}  // namespace

std::unique_ptr<CudaLibraries> MakeCudaLibraries(const CudaPrecision& precision, bool deterministic,
                                                 std::shared_ptr<PlanCache> plans,
                                                 const std::string& device) {
  return std::make_unique<Libraries>(precision, deterministic,
                                     DevicePlans(std::move(plans), device + ", " + Versions()));
}

}  // namespace trainer
