// SPDX-License-Identifier: Apache-2.0
//
// Where __shared__ variables are.  GCC puts a static variable of a function template into no
// section of our choice, so __shared__ is thread_local: then all of them, and no constants, lie in
// the block of thread-local memory that the program has on this OS thread, and the dynamic linker
// says where that is.  Other thread_local variables of the program lie there too: they are put
// back after a launch, and a kernel uses none.
//
// REQUIRES: kernels are linked into the program, not into a shared library.

#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace cuda_emulator {

// For the time of a launch, on one OS thread.
class SharedMemory {
 public:
  SharedMemory();
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  // Sets all bits of the __shared__ variables of all kernels.
  void Poison();

 private:
  std::span<std::byte> memory_;
  std::vector<std::byte> saved_;
};

}  // namespace cuda_emulator
