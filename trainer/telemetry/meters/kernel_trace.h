// SPDX-License-Identifier: Apache-2.0
//
// Every kernel that this process runs on a GPU, as NVIDIA's CUPTI tells of it (its activity API),
// those of a recorded step too.  libcupti is looked for when this is made and stays loaded. Nothing
// of CUDA is needed to build it.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trainer {

// What CUPTI (cupti_activity.h, CUDA 11.8 to 13.0) has told of a kernel since
// CUpti_ActivityKernel4; later ones add to its end.
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

struct TracedKernel {
  std::string name;  // as in the source, without CUPTI's mangling
  double begin = 0;  // seconds since Start
  double seconds = 0;
};

// At most one at a time in a process: CUPTI's callbacks do not say whom they are for.  Used from
// one thread; CUPTI has threads of its own.
class KernelTrace {
 public:
  // Takes the first of `libraries` that can be loaded, and asks it whether it can trace here.
  explicit KernelTrace(const std::vector<std::string>& libraries);
  ~KernelTrace();
  KernelTrace(const KernelTrace&) = delete;
  KernelTrace& operator=(const KernelTrace&) = delete;

  // Why there are no kernels to be had: no CUPTI, no right to use it, another profiler.  "" if
  // there are.
  const std::string& problem() const { return problem_; }

  // Kernels count from here on.  Once.  Throws Error(EX_UNAVAILABLE) if CUPTI has changed its mind.
  // REQUIRES: there is no problem.
  void Start();
  // Those that CUPTI has handed over since the last call, by their begin.  It does so when it has
  // some thousand, so that it hardly disturbs what is measured.
  std::vector<TracedKernel> Take();
  // All that is left.  What still runs is lost: wait for the GPU before.
  std::vector<TracedKernel> Stop();
  // Kernels that CUPTI had no memory for.
  std::int64_t lost() const;

 private:
  template <typename... Arguments>
  int Call(const char* function, Arguments... arguments) const;
  std::string WhyNot() const;

  void* library_ = nullptr;
  std::string problem_;
  std::uint64_t start_ = 0;  // CUPTI's clock, nanoseconds
  bool is_on_ = false;
};

}  // namespace trainer
