// SPDX-License-Identifier: Apache-2.0
//
// LD_PRELOAD=break_gpu.so breaks the GPU of a program that trains with CUDA graphs: before the
// kLaunches-th launch of one, a kernel writes where there is no memory, after which CUDA refuses
// everything, as after the loss of the card.  The kernel log then has an Xid 31.

#include <cuda_runtime.h>
#include <dlfcn.h>

#include <atomic>

#include "tests/trainer/backend/cuda/write_nowhere.h"

namespace {
constexpr int kLaunches = 20;  // of one a step: in the midst of training
}

// NOLINTNEXTLINE(readability-identifier-naming): CUDA's name
extern "C" cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  static const auto next =
      reinterpret_cast<decltype(&cudaGraphLaunch)>(dlsym(RTLD_NEXT, "cudaGraphLaunch"));
  static std::atomic<int> launches{0};
  if (++launches == kLaunches) trainer::WriteNowhere(stream);
  return next(graph, stream);
}
