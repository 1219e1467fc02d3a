// SPDX-License-Identifier: Apache-2.0
//
// What CUPTI (cupti_activity.h, CUDA 11.8 to 13.0) has told of a kernel since
// CUpti_ActivityKernel4; later ones add to its end.

#pragma once

#include <cstdint>

namespace trainer {

struct CuptiKernel {
  std::int32_t kind;
  std::uint8_t caches[2];
  std::uint16_t registers_per_thread;
  std::int32_t global_cache[2];
  std::uint64_t start;  // nanoseconds of CUPTI's clock
  std::uint64_t end;
  std::uint64_t completed;
  std::uint32_t device, context, stream;
  std::int32_t grid[3];
  std::int32_t block[3];
  std::int32_t shared_memory[2];
  std::uint32_t local_memory[2];
  std::uint32_t correlation;
  std::int64_t grid_id;
  const char* name;
};

// cupti_activity.h: CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, with which kernels still run beside each
// other.
inline constexpr std::int32_t kCuptiConcurrentKernel = 10;

}  // namespace trainer
