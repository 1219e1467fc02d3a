// SPDX-License-Identifier: Apache-2.0
//
// Autotuning: which of some ways to compute the same thing is the fastest on the current device.
// For construction only: it allocates and waits.

#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "trainer/backend/plan_cache.h"
#include "trainer/core/dtype.h"

namespace trainer {

// Device memory, full of noise, for as long as the object lives.
class ScratchMemory {
 public:
  explicit ScratchMemory(std::size_t bytes);
  ~ScratchMemory();
  ScratchMemory(const ScratchMemory&) = delete;
  ScratchMemory& operator=(const ScratchMemory&) = delete;

  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

// Of so many floats, for ScratchMemory.
constexpr std::size_t FloatBytes(std::int64_t count) {
  return static_cast<std::size_t>(count) * sizeof(float);
}

// run(i, stream) queues candidate i.  Returns the candidate with the smallest median of a few runs,
// each with the L2 cache flushed before; those that throw Error are left out.  Throws the last such
// Error if all do.  Other threads that call it wait.  REQUIRES: candidates > 0; `run` does not call
// it.
std::size_t FastestOf(std::size_t candidates,
                      const std::function<void(std::size_t, cudaStream_t)>& run);

// The median of such runs of one.
double MedianSeconds(const std::function<void(cudaStream_t)>& run);

// Whoever chooses by the clock asks it.  On the emulator another one takes its place.
class Autotuner {
 public:
  virtual ~Autotuner() = default;
  // The number of the one of `plans`, as PlanCache has them, that was found for `what` before;
  // else of the one that `autotune` says, which is kept.
  virtual std::size_t Choose(const std::string& what, std::span<const std::string> plans,
                             const std::function<std::size_t()>& autotune) = 0;
};
// For one back end: it finds each only once, also where there is no cache.
class PlanAutotuner final : public Autotuner {
 public:
  explicit PlanAutotuner(DevicePlanCache plans) : plans_(std::move(plans)) {}
  std::size_t Choose(const std::string& what, std::span<const std::string> plans,
                     const std::function<std::size_t()>& autotune) override;

 private:
  const DevicePlanCache plans_;
  std::map<std::string, std::size_t> known_;
};

// a - b, by the roots of their mean squares; waits for the default stream.  Not a number if one of
// the values is none, or all of b are 0.
double RelativeDifference(const void* a, const void* b, DType dtype, std::int64_t count);

}  // namespace trainer
