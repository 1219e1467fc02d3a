// SPDX-License-Identifier: Apache-2.0
//
// CUDA's runtime as the other files of this directory see it: its errors as Error, streams, events.

#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <memory>
#include <string>

#include "trainer/core/stream.h"

namespace trainer {

// Throws Error, "<action>: <CUDA's text>", unless `result` is success: EX_OSERR when memory is
// short or the GPU has failed (the error then names it and says what to do), EX_UNAVAILABLE when
// there is no usable GPU, else EX_SOFTWARE.  Kernels call it, whose compiler may have another C++
// library than that of the other files (doc/decisions/0092): no type of the library is passed.
void CheckCuda(cudaError_t result, const char* action);

// Of the current GPU.
int SmCount();
int ComputeCapabilityMajor();
std::size_t L2CacheBytes();
std::size_t MaxSharedBytes();  // that a thread block may ask for

// Throws as CheckCuda does if the GPU has failed; for libraries that only say that they have.
void CheckDevice(const std::string& action);

// Takes GPU `device` for all of this process.  Throws Error(EX_UNAVAILABLE) if it cannot be used.
void TakeDevice(int device);

// Whether a kernel may start before the one in front of it on its stream has ended (launch.cuh);
// for all of this process, and not so at first. REQUIRES: compute capability 9.0 or later, code for
// it, a driver for CUDA 12.3 or later.
void AllowProgrammaticLaunch(bool allow);
bool AllowsProgrammaticLaunch();

std::unique_ptr<Stream> MakeCudaStream();
// Of the highest priority that the current GPU has.
std::unique_ptr<Stream> MakeHighPriorityCudaStream();
std::unique_ptr<Event> MakeCudaEvent();

// REQUIRES: made by one of those above, or a BorrowedStream.
cudaStream_t HandleOf(Stream& stream);

// One that somebody else has; the default one.
class BorrowedStream final : public Stream {
 public:
  explicit BorrowedStream(cudaStream_t stream = nullptr) : stream_(stream) {}
  void Synchronize() override { CheckCuda(cudaStreamSynchronize(stream_), "waiting for the GPU"); }
  void* handle() const override { return stream_; }

 private:
  cudaStream_t stream_;
};

}  // namespace trainer
