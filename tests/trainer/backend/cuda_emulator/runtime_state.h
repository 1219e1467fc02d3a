// SPDX-License-Identifier: Apache-2.0
//
// What the files of the emulated runtime share.

#pragma once

#include <cstddef>
#include <functional>
#include <map>

#include "tests/trainer/backend/cuda_emulator/runtime_api.h"

namespace cuda_emulator {

// Notes an error for cudaGetLastError.
cudaError_t Result(cudaError_t error);
// What a call that needs the GPU begins with: FailAfter decides.
cudaError_t Entered();

// What is done on a stream, told the priority with which.
using QueuedWork = std::function<cudaError_t(int priority)>;
// Does `work` at once; where `stream` records, each time that the graph is launched.
cudaError_t Queue(cudaStream_t stream, QueuedWork work);

// cudaErrorStreamCaptureUnsupported while a stream records that this thread has made record: for
// what allocates or waits.  The recording is spoilt.
cudaError_t RejectWhileRecording();

// What cudaMalloc has given and cudaFree has not taken back: where, and how many bytes.
std::map<const std::byte*, std::size_t> DeviceAllocations();

}  // namespace cuda_emulator
