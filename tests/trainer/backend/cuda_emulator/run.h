// SPDX-License-Identifier: Apache-2.0
//
// Runs a kernel on the CPU, as CUDA's rules say and stricter, so that a kernel that passes here
// does not depend on luck:
//   * Blocks run one after the other, the threads of a block as fibers: one runs until it waits or
//     returns, then the next.  A warp gets as far as it can before the next one moves, and in turns
//     the first or the last goes first, so that a missing __syncthreads is likely to be seen.
//   * __syncthreads must be reached by all threads of the block, at the same place of the source
//     (for one in a function: of that function).  A thread that has returned is missing, too.
//   * Shuffles and __syncwarp are for whole warps: all threads of the warp that have not returned
//     must reach the same one.  The value of a lane that is not there has all bits set.
//   * A copy of 16 bytes that a thread starts leaves NaN until that thread waits for it.
//   * The instructions of tensor_cores.h need all 32 lanes: none may have returned.
//   * __shared__ memory has all bits set (not a number) when a block begins.
//   * No argument may be, or hold, an address of the host's memory (arguments.h).
// Whatever breaks a rule is a std::runtime_error that names place and threads; the launch ends.
//
// Threads: launches from several OS threads wait for each other.

#pragma once

#include <cstdint>
#include <functional>

#include "tests/trainer/backend/cuda_emulator/vector_types.h"

namespace cuda_emulator {

// Calls `thread` once for each thread of the grid, with threadIdx, blockIdx, blockDim and gridDim
// set.  Returns when all have returned.  Not from inside a kernel.
void Run(dim3 grid, dim3 block, const std::function<void()>& thread);

// Where in the source a thread waits.
struct Place {
  const char* file;
  int line;
};

// What the stand-ins of CUDA's functions are made of; from inside a kernel only.
void SyncBlock(Place place);
// Offers `value` to the lanes of this warp and returns what lane `source` offers.
std::uint64_t Exchange(unsigned mask, std::uint64_t value, unsigned source, Place place);
unsigned Lane();
// Of 16 bytes, both aligned to that; what `from` has when the thread waits for it.  Nobody may
// write to `to` until then.
void StartCopy(void* to, const void* from, Place place);
void WaitForCopies();                       // for those of this thread
void EndCopyGroup();                        // of those that it has started since the last one
void WaitForCopiesBut(std::size_t groups);  // the last ones
// For what a warp does as one: calls work(lanes) once, when all 32 lanes are there, with what each
// gives as `own`.
using WarpWork = void (*)(void* const* lanes);
void Together(void* own, WarpWork work, Place place);

}  // namespace cuda_emulator
