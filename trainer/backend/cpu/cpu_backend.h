// SPDX-License-Identifier: Apache-2.0
//
// The cpu back end: fp32 on oneDNN and OpenMP, in the layouts that oneDNN's convolutions choose.
// For a fixed number of threads two runs give the same bits.
//
// Threads: OpenMP keeps the number of threads per calling thread, and making a back end sets it;
// use a back end from the thread that made it, and with the number of threads last set there.

#pragma once

#include <memory>

#include "trainer/backend/backend.h"
#include "trainer/backend/registry.h"

namespace trainer {

// options.threads = 0 takes OMP_NUM_THREADS, but no more than the cores this process may run on:
// two threads on one core are several times slower than one.
std::unique_ptr<Backend> MakeCpuBackend(const BackendOptions& options);

}  // namespace trainer
