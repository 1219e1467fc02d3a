// SPDX-License-Identifier: Apache-2.0
//
// A loop over several threads.

#pragma once

#include <cstdint>
#include <functional>

namespace trainer {

// Calls body(i) once for each i in [0, count), on up to `threads` threads, the caller's among them,
// in ascending order of start.  Threads that cannot be had are done without.  If bodies throw, no
// new ones are started, and the exception of the smallest i is thrown on.
void ParallelFor(int threads, std::int64_t count, const std::function<void(std::int64_t)>& body);

}  // namespace trainer
