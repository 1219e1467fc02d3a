// SPDX-License-Identifier: Apache-2.0
//
// Which GPUs this node has, by what it says itself: its device files, and lists in variables such as
// CUDA_VISIBLE_DEVICES.  Without the standard library, for the shim.

#pragma once

namespace launcher {

// GPU device files here, /dev/nvidia0 and so on; 0 also where GPUs have no such files.
int CountGpuDevices();

// Whether a list such as CUDA_VISIBLE_DEVICES names slices of GPUs ("MIG-..."): of those a process
// sees the first alone, and several may be of one device file.
bool AreGpuSlices(const char* list);

// The number at `position` of a list of numbers and ranges, "0,2-3"; -1: it is shorter, or none.
int GpuNumberAt(const char* list, int position);

// An entry of such a list.
struct GpuEntry {
  char text[128];  // "" for none
};

// The one at `position`, of a list that is as long as wanted by starting anew.
GpuEntry GpuEntryAt(const char* list, int position);

// Entries of a list such as "0,1" or "GPU-3f2a,GPU-77b0"; "0-3" counts as four.
int CountGpuEntries(const char* list);

}  // namespace launcher
