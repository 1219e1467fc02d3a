// SPDX-License-Identifier: Apache-2.0
//
// How a program gets at the module.  loader.cc also has the functions of cuda_backend.h for
// programs: they pass on to the module that lies beside the program, in ../lib/ddlrun, or for
// programs of a wheel among Python's packages.

#pragma once

#include <string>

#include "trainer/backend/cuda/module.h"

namespace trainer {

// Why there can be no GPU ("no GPU: there is no NVIDIA driver ..."), "" if there may be one.  Costs
// next to nothing where there is none.  `library`: the driver's, as for dlopen.
std::string DriverProblem(const std::string& library);

struct LoadedModule {
  const CudaModule* module = nullptr;
  std::string problem;  // where there is none: why, and what to do
};
// The module in the file `path`.  Never unloaded: CUDA's threads may be in it.
LoadedModule LoadCudaModule(const std::string& path);

}  // namespace trainer
