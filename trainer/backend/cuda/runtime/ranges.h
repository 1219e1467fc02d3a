// SPDX-License-Identifier: Apache-2.0
//
// Ranges of time with names, as NVIDIA's profilers (Nsight Systems) show them: NVTX 3.  Without a
// profiler a call looks at one pointer.  A build without NVTX has ranges_absent.cc, which does
// nothing, in the place of ranges.cc.
//
// Threads: any; ranges are of the thread that begins them.

#pragma once

namespace trainer {

// `name` is copied by a profiler.
void BeginProfilerRange(const char* name);
void EndProfilerRange();

}  // namespace trainer
