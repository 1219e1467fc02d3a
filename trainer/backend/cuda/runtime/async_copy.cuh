// SPDX-License-Identifier: Apache-2.0
//
// Copies from memory to shared memory past registers (PTX ISA, "cp.async"), from compute capability
// 8.0 on; in code for an earlier one they are a trap.  They pass the L1 cache by.

#pragma once

#include <cuda_runtime.h>

namespace trainer {

// Of 16 bytes, both aligned to that.  They are there when this thread has waited for them; for
// others of the block that then meet it in __syncthreads.
__device__ __forceinline__ void StartCopy(void* to_shared, const void* from) {
#ifdef DDLRUN_CUDA_EMULATOR
  cuda_emulator::StartCopy(to_shared, from, {__FILE__, __LINE__});
#elif __CUDA_ARCH__ >= 800
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(to_shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
#else
  __trap();
#endif
}

// For all that this thread has started.
__device__ __forceinline__ void WaitForCopies() {
#ifdef DDLRUN_CUDA_EMULATOR
  cuda_emulator::WaitForCopies();
#elif __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#else
  __trap();
#endif
}

// Copies that come in groups: what this thread has started since its last group becomes one.
__device__ __forceinline__ void EndCopyGroup() {
#ifdef DDLRUN_CUDA_EMULATOR
  cuda_emulator::EndCopyGroup();
#elif __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#else
  __trap();
#endif
}

// For those of all its groups but the last `groups`.
template <int groups>
__device__ __forceinline__ void WaitForCopiesBut() {
#ifdef DDLRUN_CUDA_EMULATOR
  cuda_emulator::WaitForCopiesBut(groups);
#elif __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory");
#else
  __trap();
#endif
}

}  // namespace trainer
