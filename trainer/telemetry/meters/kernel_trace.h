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
