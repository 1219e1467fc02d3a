// SPDX-License-Identifier: Apache-2.0
//
// Which GPUs of a machine a program sees by CUDA_VISIBLE_DEVICES, as CUDA itself reads the variable
// (CUDA Programming Guide, CUDA Environment Variables).  Pure, safe from any thread.

#pragma once

#include <string>
#include <vector>

namespace launcher {

// One number for each device that the list names, in its order: which of the machine's GPUs the
// device is, or is a slice of; -1 where it is one of them, but it is not known which.
//
// `uuids` has one entry for each GPU of the machine, in PCI order; "" where the UUID is not known.
// All entries of the list are of the kind of the first one:
//
//   numbers      with or without a text behind them: "1", "1x"
//   GPUs         the beginning of a UUID that only one GPU has: "GPU-8932f9"
//   slices       "MIG-...", of which only the driver knows whether they are there
//
// The list ends before the first entry that names no device, such as -1.  A list that names a
// device twice names none at all, and so does an empty list.
std::vector<int> VisibleGpus(const std::string& list, const std::vector<std::string>& uuids);

// Whether the list names slices of GPUs, of which a process sees the first only.
bool HasGpuSlices(const std::string& list);

}  // namespace launcher
