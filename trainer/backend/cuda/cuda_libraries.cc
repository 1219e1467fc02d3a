// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/cuda_libraries.h"

#include <cublasLt.h>
#include <cudnn.h>

#include "trainer/backend/cuda/convolution.h"
#include "trainer/backend/cuda/linear.h"
#include "trainer/backend/cuda/runtime.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

std::string Dotted(std::size_t version, std::size_t major_factor) {
  return std::to_string(version / major_factor) + "." +
         std::to_string(version % major_factor / 100) + "." + std::to_string(version % 100);
}

// bf16 came with Ampere.
void RefuseTypeThatDeviceLacks(DType storage) {
  if (storage != DType::kBFloat16) return;
  int device = 0;
  int major = 0;
  int minor = 0;
  CheckCuda(cudaGetDevice(&device), "asking for the current GPU");
  CheckCuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
            "asking for the GPU's generation");
  CheckCuda(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device),
            "asking for the GPU's generation");
  if (major >= 8) return;
  throw Error(EX_UNAVAILABLE,
              "bf16 needs an Ampere GPU (compute capability 8.0) or a later one; "
              "this one has " +
                  std::to_string(major) + "." + std::to_string(minor) + ": use fp16");
}

class Libraries final : public CudaLibraries {
 public:
  Libraries(const CudaPrecision& precision, bool deterministic)
      : precision_(precision), deterministic_(deterministic), cudnn_(CurrentCudnnDevice()) {}

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
  CudnnDevice& cudnn_;
};

}  // namespace

std::unique_ptr<CudaLibraries> MakeCudaLibraries(const CudaPrecision& precision,
                                                 bool deterministic) {
  RefuseTypeThatDeviceLacks(precision.storage);
  return std::make_unique<Libraries>(precision, deterministic);
}

}  // namespace trainer
