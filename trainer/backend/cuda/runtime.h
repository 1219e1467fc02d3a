// SPDX-License-Identifier: Apache-2.0
//
// CUDA's runtime as the other files of this folder see it: its errors as Error, streams, events.

#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <string>

#include "trainer/core/stream.h"

namespace trainer {

// Throws Error, "<action>: <CUDA's text>", unless `result` is success: EX_OSERR when memory is
// short, EX_UNAVAILABLE when there is no usable GPU, EX_SOFTWARE for what the device reports of its
// work.
void CheckCuda(cudaError_t result, const std::string& action);

// Of the current GPU.
int Multiprocessors();

std::unique_ptr<Stream> MakeCudaStream();
std::unique_ptr<Event> MakeCudaEvent();

// REQUIRES: made by MakeCudaStream.
cudaStream_t HandleOf(Stream& stream);

}  // namespace trainer
