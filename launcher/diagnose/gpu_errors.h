// SPDX-License-Identifier: Apache-2.0
//
// Errors of GPUs, as NVIDIA's driver writes them into the kernel log: "NVRM: Xid (PCI:0000:3b:00):
// 79, pid=1234, name=python3, GPU has fallen off the bus." Their numbers:
// https://docs.nvidia.com/deploy/xid-errors/

#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace launcher {

struct GpuError {
  double seconds = 0;  // since the start of the machine
  int xid = 0;
  std::string gpu;  // "0000:3b:00", its PCI address
  pid_t pid = 0;    // of the process that it was found in; 0: not known
};

// Of the text of /dev/kmsg; records that are none are passed over.  Pure.
std::vector<GpuError> ParseGpuErrors(std::string_view text);

// The kernel log; "" where this user may not read it (kernel.dmesg_restrict).  Does not wait.
std::string ReadKernelLog(const std::string& path);

}  // namespace launcher
