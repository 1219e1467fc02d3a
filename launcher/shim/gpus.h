// SPDX-License-Identifier: Apache-2.0
//
// How many GPUs this node has, by what it says itself.

#pragma once

namespace launcher {

// GPU device files here, /dev/nvidia0 and so on; 0 also where GPUs have no such files.
int CountGpuDevices();

// Entries of a list such as "0,1" or "GPU-3f2a,GPU-77b0"; "0-3" counts as four.
int CountGpuEntries(const char* list);

}  // namespace launcher
