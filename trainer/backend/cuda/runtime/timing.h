// SPDX-License-Identifier: Apache-2.0
//
// Autotuning: which of some ways to compute the same thing is the fastest on the current device.
// For construction only: it allocates and waits.

#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <functional>

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

// run(i, stream) queues candidate i.  Returns the candidate with the smallest median of a few runs;
// those that throw Error are left out.  Throws the last such Error if all do.  Other threads
// that call it wait.  REQUIRES: candidates > 0; `run` does not call it.
std::size_t FastestOf(std::size_t candidates,
                      const std::function<void(std::size_t, cudaStream_t)>& run);

}  // namespace trainer
