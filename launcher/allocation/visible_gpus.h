// SPDX-License-Identifier: Apache-2.0
//
// What CUDA_VISIBLE_DEVICES leaves of the GPUs of a machine, as CUDA itself reads it (CUDA
// Programming Guide, CUDA Environment Variables).  Pure, safe from any thread.

#pragma once

#include <string>
#include <vector>

namespace launcher {

// For each device that the list names, in its order, which of the machine's GPUs it is or is a part
// of; -1: one of them, but which is not known.
//
// `uuids` has one entry per GPU in PCI order, "" for not known.  Entries are all of the kind of the
// first: numbers, with or without a text behind them ("1", "1x"); beginnings of UUIDs that fit one
// GPU ("GPU-8932f9"); slices of GPUs ("MIG-..."), of which only the driver knows whether they are
// there.  The list ends at the first entry that names none, such as -1; one that names a device
// twice names none at all, and so does an empty one.
std::vector<int> VisibleGpus(const std::string& list, const std::vector<std::string>& uuids);

// Whether an entry of the list is a slice of a GPU: of those a process sees the first alone.
bool HasGpuSlices(const std::string& list);

}  // namespace launcher
