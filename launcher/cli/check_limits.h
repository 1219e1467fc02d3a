// SPDX-License-Identifier: Apache-2.0
//
// The limits of the checks of nodes (launcher/health/check_rules.h), which a site may set:
// `check_limits` of the site file.  A new one is a field and a row here, and the check that reads
// it.  Pure.

#pragma once

#include <array>

namespace launcher {

struct CheckLimits {
  // By which part the memory of two nodes may differ: firmware keeps some of it for itself.
  double memory_difference = 0.05;
  // The locked memory that RDMA needs, for gradients and for the buffers of NCCL and MPI.
  double memlock_gib = 1;
  // The free memory in /dev/shm that NVIDIA asks for in containers (--shm-size=1g).
  double shm_gib = 1;
  // The free space in the working directory: five checkpoints of ResNet-50, of 205 MB each.
  double directory_gib = 1;
  // By how much clocks may differ.  They are read after a barrier, which even busy nodes leave
  // within a tenth of a second.  A second is what logs and the times of files are put in order by.
  double clock_seconds = 1;
  // How long a pair may take for kLinkMessageBytes there and back; the slowest network takes a
  // tenth of it.
  double link_seconds = 1;
};

struct CheckLimitKey {
  const char* name;
  double CheckLimits::*limit;
};

inline constexpr std::array kCheckLimitKeys = {
    CheckLimitKey{"memory_difference", &CheckLimits::memory_difference},
    CheckLimitKey{"memlock_gib", &CheckLimits::memlock_gib},
    CheckLimitKey{"shm_gib", &CheckLimits::shm_gib},
    CheckLimitKey{"directory_gib", &CheckLimits::directory_gib},
    CheckLimitKey{"clock_seconds", &CheckLimits::clock_seconds},
    CheckLimitKey{"link_seconds", &CheckLimits::link_seconds},
};

}  // namespace launcher
