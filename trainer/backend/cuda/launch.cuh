// SPDX-License-Identifier: Apache-2.0
//
// Starting a kernel.  Kernels of this folder keep to a small part of CUDA: threadIdx, blockIdx,
// blockDim, gridDim, __shared__ arrays of fixed size, __syncthreads, __shfl_xor_sync over whole
// warps, tensor_cores.cuh.  tests/trainer/backend/cuda_emulator runs just that part on a CPU, so
// that every kernel is tested where there is no GPU.

#pragma once

#include <cuda_runtime.h>

#include "trainer/backend/cuda/runtime.h"

namespace trainer {

// Queues kernel<<<grid, block>>>(arguments...) on `stream`.  Throws Error if it cannot be started.
template <typename... Parameters, typename... Arguments>
void Launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, cudaStream_t stream,
            Arguments... arguments) {
#ifdef DDLRUN_CUDA_EMULATOR
  cuda_emulator::QueueWork(stream, [=] {
    cuda_emulator::Run(grid, block, [&] { kernel(static_cast<Parameters>(arguments)...); });
  });
#else
  kernel<<<grid, block, 0, stream>>>(static_cast<Parameters>(arguments)...);
#endif
  CheckCuda(cudaGetLastError(), "starting a kernel");
}

}  // namespace trainer
