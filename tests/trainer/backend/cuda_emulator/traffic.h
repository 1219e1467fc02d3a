// SPDX-License-Identifier: Apache-2.0
//
// Bytes that kernels, and calls of libraries, read and write of the device's memory.  A piece of
// work is counted by whole pages, each once for reading and once for writing, as a GPU moves it
// whose cache holds what one kernel uses again; what it writes before it reads is not read.  Pages
// that an allocation shares with others are left out, so small arrays do not count.  Copies and
// memsets belong to the piece of work before them.
//
// Memory is protected while work runs, and the first access to each page is a SIGSEGV.
//
// Threads: one at a time, which is the one that runs the work.

#pragma once

#include <cstddef>
#include <functional>

namespace cuda_emulator {

struct Traffic {
  std::size_t read = 0;
  std::size_t written = 0;
};

// Whether this machine tells reading from writing: x86-64.
bool CanCountTraffic();

// Of all work from now on, or no longer.  REQUIRES: CanCountTraffic().
void CountTraffic(bool count);
// Since CountTraffic(true).
Traffic TrafficSoFar();

// Runs `work`, counted where that is asked for; how the emulated runtime runs all of it.
void RunCounted(const std::function<void()>& work);

}  // namespace cuda_emulator
