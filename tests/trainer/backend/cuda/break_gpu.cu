// SPDX-License-Identifier: Apache-2.0
//
// LD_PRELOAD=break_gpu.so breaks the GPU of a program in mid-run: when it waits for a stream for
// the kWaits-th time, a kernel has written where there is no memory, after which CUDA refuses
// everything, as after the loss of the card.  The kernel log then has an Xid 31.

#include <cuda_runtime.h>
#include <dlfcn.h>

#include <atomic>

namespace {

constexpr int kWaits = 1000;

__global__ void WriteTo(volatile int* nowhere) { *nowhere = 1; }

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): CUDA's name
extern "C" cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  static const auto next =
      reinterpret_cast<decltype(&cudaStreamSynchronize)>(dlsym(RTLD_NEXT, "cudaStreamSynchronize"));
  static std::atomic<int> waits{0};
  if (++waits == kWaits) WriteTo<<<1, 1, 0, stream>>>(reinterpret_cast<int*>(16));
  return next(stream);
}
