// SPDX-License-Identifier: Apache-2.0
//
// The back end for NVIDIA GPUs: kernels of its own, cuDNN for convolutions, cuBLASLt for the linear
// layer.

#pragma once

#include <memory>
#include <string>

#include "trainer/backend/backend.h"
#include "trainer/backend/registry.h"

namespace trainer {

// On GPU options.local_rank of those that this process sees, counted round where there are more
// ranks than GPUs.  Throws Error(EX_UNAVAILABLE) where CudaProblem() says something, where this
// build has no code for that GPU, and where it has no bf16 or TF32 and it is asked for.
std::unique_ptr<Backend> MakeCudaBackend(const BackendOptions& options);

// Why this machine cannot run the back end ("no GPU: ...", "the GPU driver is too old: ..."), "" if
// it can.
std::string CudaProblem();

// The file that the back end is loaded from, whether or not it can run: "" where it is a part of
// the program.  "not installed: ..." says what to do.
std::string CudaModuleFile();

}  // namespace trainer
