// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/libraries/cuda_libraries.h"

#include <cublasLt.h>
#include <cudnn.h>

#include <utility>

#include "trainer/backend/cuda/libraries/convolution.h"
#include "trainer/backend/cuda/libraries/linear.h"
#include "trainer/backend/cuda/runtime/runtime.h"
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

std::size_t DeviceBytes() {
  std::size_t free = 0;
  std::size_t total = 0;
  CheckCuda(cudaMemGetInfo(&free, &total), "asking for the GPU's memory");
  return total;
}

class Libraries final : public CudaLibraries {
 public:
  Libraries(const CudaPrecision& precision, bool deterministic, DevicePlanCache plans)
      : precision_(precision),
        deterministic_(deterministic),
        rules_{.tf32 = precision.tf32,
               .deterministic = deterministic,
               .workspace_limit = WorkspaceLimitOf(DeviceBytes())},
        plans_(std::move(plans)),
        cudnn_(OpenCudnnDevice(plans_)),
        autotuner_(plans_) {}

  std::string versions() const override { return Versions(); }

  std::unique_ptr<CudaConvolution> MakeConvolution(const ConvolutionSpec& spec,
                                                   const ConvolutionFusions& fusions) override {
    DDL_CHECK(spec.src.dtype == precision_.storage);
    return MakeCudnnConvolution(cudnn_, rules_, spec, fusions);
  }

  std::unique_ptr<Linear> MakeLinear(const LinearSpec& spec) override {
    DDL_CHECK(spec.src.dtype == precision_.storage);
    return MakeCublasLinear(spec, precision_.tf32, deterministic_, plans_);
  }

  bool deterministic() const override { return deterministic_; }
  Autotuner& autotuner() override { return autotuner_; }

 private:
  CudaPrecision precision_;
  bool deterministic_;
  EngineRules rules_;
  DevicePlanCache plans_;
  std::shared_ptr<CudnnDevice> cudnn_;
  PlanAutotuner autotuner_;
};

}  // namespace

std::unique_ptr<CudaLibraries> MakeCudaLibraries(const CudaPrecision& precision, bool deterministic,
                                                 std::shared_ptr<PlanCache> plans,
                                                 const std::string& device) {
  return std::make_unique<Libraries>(precision, deterministic,
                                     DevicePlanCache(std::move(plans), device + ", " + Versions()));
}

}  // namespace trainer
