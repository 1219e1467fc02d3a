// SPDX-License-Identifier: Apache-2.0
//
// Which GPUs this node has, by its device files and by lists in variables such as
// CUDA_VISIBLE_DEVICES.  The shim needs this, so it does without the C++ library.

#pragma once

namespace launcher {

// The number of GPU device files, /dev/nvidia0 and so on.  It is 0 also where the GPUs of a node
// have no such files.
int CountGpuDevices();

// Whether a list such as CUDA_VISIBLE_DEVICES names slices of GPUs ("MIG-...").  A process sees the
// first slice only, and several slices may share one device file.
bool AreGpuSlices(const char* list);

// The number at `position` in a list of numbers and ranges: 3 at position 2 of "0,2-3".  -1 where
// the list is shorter, or there is no number.
int GpuNumberAt(const char* list, int position);

// One entry of a list such as CUDA_VISIBLE_DEVICES.
struct GpuEntry {
  char text[128];  // "" for none
};

// The entry at `position`; behind its last entry the list begins again with the first.
GpuEntry GpuEntryAt(const char* list, int position);

// The number of entries of a list such as "0,1" or "GPU-3f2a,GPU-77b0"; "0-3" counts as four.
int CountGpuEntries(const char* list);

}  // namespace launcher
