// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/module.h"

#include "trainer/backend/cuda/cuda_backend.h"

// NOLINTNEXTLINE(readability-identifier-naming): a C name
extern "C" const trainer::CudaModule* ddltrain_cuda_module() {
  static const trainer::CudaModule module = {trainer::kCudaModuleBuild, trainer::MakeCudaBackend,
                                             trainer::CudaProblem};
  return &module;
}
