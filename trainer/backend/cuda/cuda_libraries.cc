// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/cuda_libraries.h"

#include <cublasLt.h>
#include <cudnn.h>

#include "trainer/backend/cuda/convolution.h"
#include "trainer/backend/cuda/linear.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

std::string Dotted(std::size_t version, std::size_t major_factor) {
  return std::to_string(version / major_factor) + "." +
         std::to_string(version % major_factor / 100) + "." + std::to_string(version % 100);
}

class Libraries final : public CudaLibraries {
 public:
  Libraries(const CudaPrecision& precision, bool deterministic)
      : precision_(precision), deterministic_(deterministic), cudnn_(OpenCudnnDevice()) {}

  std::string versions() const override {
    // cuDNN 8.9.7 is 8907, 9.19.0 is 91900.
    const std::size_t cudnn = cudnnGetVersion();
    return "cuDNN " + Dotted(cudnn, cudnn < 90000 ? 1000 : 10000) + ", cuBLASLt " +
           Dotted(cublasLtGetVersion(), 10000);
  }

  std::unique_ptr<Convolution> MakeConvolution(const ConvolutionSpec& spec) override {
    DDL_CHECK(spec.src.dtype == precision_.storage);
    return MakeCudnnConvolution(cudnn_, {.tf32 = precision_.tf32, .deterministic = deterministic_},
                                spec);
  }

  std::unique_ptr<Linear> MakeLinear(const LinearSpec& spec) override {
    DDL_CHECK(spec.src.dtype == precision_.storage);
    return MakeCublasLinear(spec, precision_.tf32, deterministic_);
  }

 private:
  CudaPrecision precision_;
  bool deterministic_;
  std::shared_ptr<CudnnDevice> cudnn_;
};

}  // namespace

std::unique_ptr<CudaLibraries> MakeCudaLibraries(const CudaPrecision& precision,
                                                 bool deterministic) {
  return std::make_unique<Libraries>(precision, deterministic);
}

}  // namespace trainer
