// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/cuda_libraries.h"

#include <cublasLt.h>
#include <cudnn.h>

#include <utility>

#include "trainer/backend/cuda/libraries/convolution.h"
#include "trainer/backend/cuda/libraries/linear.h"
#include "trainer/backend/cuda/norms/norm_autotune.h"
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
  Libraries(const CudaPrecision& precision, bool deterministic, DevicePlanCache plans)
      : precision_(precision),
        deterministic_(deterministic),
        plans_(std::move(plans)),
        cudnn_(OpenCudnnDevice(plans_)),
        norm_autotuner_(plans_),
        stem_autotuner_(plans_) {}

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

  NormLaunchConfig ForwardLaunchConfig(const NormSize& size) override {
    return norm_autotuner_.Forward(size);
  }
  NormLaunchConfig BackwardLaunchConfig(const NormSize& size) override {
    return norm_autotuner_.Backward(size);
  }

  StemVariant FasterStem(Convolution& convolution, const StemSize& size) override {
    if (deterministic_ || !HasStemPasses(size)) return StemVariant::kStored;
    return stem_autotuner_.Choose(convolution, size);
  }

 private:
  CudaPrecision precision_;
  bool deterministic_;
  DevicePlanCache plans_;
  std::shared_ptr<CudnnDevice> cudnn_;
  NormAutotuner norm_autotuner_;
  StemAutotuner stem_autotuner_;
};

}  // namespace

std::unique_ptr<CudaLibraries> MakeCudaLibraries(const CudaPrecision& precision, bool deterministic,
                                                 std::shared_ptr<PlanCache> plans,
                                                 const std::string& device) {
  return std::make_unique<Libraries>(precision, deterministic,
                                     DevicePlanCache(std::move(plans), device + ", " + Versions()));
}

}  // namespace trainer
