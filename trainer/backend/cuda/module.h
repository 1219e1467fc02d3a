// SPDX-License-Identifier: Apache-2.0
//
// The back end as a module that programs load when they are asked for it, so that those that are
// not need nothing of NVIDIA's (doc/decisions/0009).  What crosses is C++: program and module must
// be of one build, and say so.

#pragma once

#include <memory>
#include <string>

#include "trainer/backend/backend.h"
#include "trainer/backend/registry.h"

namespace trainer {

struct CudaModule {
  // Of the module; first, so that a program of any build can read it.
  const char* build;
  // Of cuda_backend.h.
  std::unique_ptr<Backend> (*make)(const BackendOptions&);
  std::string (*problem)();
};

// What a module exports: extern "C" const CudaModule* ddltrain_cuda_module().
using CudaModuleEntry = const CudaModule* (*)();
inline constexpr const char* kCudaModuleEntry = "ddltrain_cuda_module";

// Only a module that has a C++ library of its own exports this as well, and is told first of all
// which exceptions the program has thrown: by its __cxa_get_globals
// (packaging/wheel/exceptions.cc).
using ShareExceptions = void (*)(void* (*of_program)());
inline constexpr const char* kShareExceptions = "ddltrain_share_exceptions";

// Version, compiler, and a checksum of the headers whose types cross.
extern const char* const kCudaModuleBuild;

}  // namespace trainer
