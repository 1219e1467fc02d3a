// SPDX-License-Identifier: Apache-2.0
//
// Values on the emulated GPU, which a test reads and writes as if they were the host's.

#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <new>
#include <vector>

namespace cuda_emulator {

template <typename T>
struct DeviceAllocator {
  using value_type = T;  // NOLINT(readability-identifier-naming): the standard's name

  DeviceAllocator() = default;
  template <typename U>
  DeviceAllocator(const DeviceAllocator<U>& /*other*/) {}  // NOLINT(google-explicit-constructor)

  T* allocate(std::size_t count) {  // NOLINT(readability-identifier-naming): the standard's name
    void* memory = nullptr;
    if (cudaMalloc(&memory, count * sizeof(T)) != cudaSuccess) throw std::bad_alloc();
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t) { cudaFree(memory); }  // NOLINT: the same

  bool operator==(const DeviceAllocator&) const = default;
};

template <typename T>
using DeviceVector = std::vector<T, DeviceAllocator<T>>;

}  // namespace cuda_emulator
