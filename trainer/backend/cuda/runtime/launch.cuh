// SPDX-License-Identifier: Apache-2.0
//
// Starting a kernel.  Kernels of this directory keep to a small part of CUDA: threadIdx, blockIdx,
// blockDim, gridDim, __shared__ arrays of fixed size and one that a launch gives, __syncthreads,
// __shfl_xor_sync over whole warps, tensor_cores.cuh, async_copy.cuh.  Just that part is what
// tests/trainer/backend/cuda_emulator runs on a CPU, so that every kernel is tested where there is
// no GPU.

#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "trainer/backend/cuda/runtime/runtime.h"
#include "trainer/core/error.h"

namespace trainer {

// The shared memory that a launch has given beside arrays of fixed size, aligned to 16 bytes.
// Every GPU has 64 KB from 7.0 on; whoever wants more asks MaxSharedBytes.
constexpr std::size_t kMaxGivenShared = std::size_t{163} << 10;  // of an A100
__device__ inline std::byte* GivenShared() {
#ifdef DDLRUN_CUDA_EMULATOR
  alignas(16) __shared__ std::byte given_shared[kMaxGivenShared];
  return given_shared;
#else
  extern __shared__ uint4 given_shared[];
  return reinterpret_cast<std::byte*>(given_shared);
#endif
}

// What every kernel begins with: waits until the kernels before it on its stream are done and what
// they have written can be read, and lets the next one start.  Both matter with
// AllowProgrammaticLaunch alone, where the thread blocks of a kernel start as soon as all of the
// kernel before have started and there is room ("programmatic dependent launch" in the CUDA
// programming guide): starting takes no time of its own then.
__device__ __forceinline__ void SynchronizeGridDependencies() {
#if !defined(DDLRUN_CUDA_EMULATOR) && __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
#endif
}

// What Launch and LaunchWithShared have in common.
template <typename... Parameters, typename... Arguments>
void QueueKernel(std::size_t shared_bytes, void (*kernel)(Parameters...), dim3 grid, dim3 block,
                 cudaStream_t stream, Arguments... arguments) {
#ifdef DDLRUN_CUDA_EMULATOR
  DDL_CHECK(shared_bytes <= kMaxGivenShared);
  cuda_emulator::CheckArguments(static_cast<Parameters>(arguments)...);
  cuda_emulator::QueueWork(stream, [=] {
    cuda_emulator::Run(grid, block, [&] { kernel(static_cast<Parameters>(arguments)...); });
  });
  CheckCuda(cudaGetLastError(), "starting a kernel");
#else
  cudaLaunchAttribute start = {};
  start.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  start.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &start;
  config.numAttrs = AllowsProgrammaticLaunch() ? 1 : 0;
  CheckCuda(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...),
            "starting a kernel");
#endif
}

// Queues kernel<<<grid, block>>>(arguments...) on `stream`.  Throws Error if it cannot be started.
template <typename... Parameters, typename... Arguments>
void Launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, cudaStream_t stream,
            Arguments... arguments) {
  QueueKernel(0, kernel, grid, block, stream, arguments...);
}

// The same with `bytes` of shared memory.
template <typename... Parameters, typename... Arguments>
void LaunchWithShared(std::size_t bytes, void (*kernel)(Parameters...), dim3 grid, dim3 block,
                      cudaStream_t stream, Arguments... arguments) {
#ifndef DDLRUN_CUDA_EMULATOR
  CheckCuda(
      cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                           cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
      "asking for shared memory");
#endif
  QueueKernel(bytes, kernel, grid, block, stream, arguments...);
}

}  // namespace trainer
