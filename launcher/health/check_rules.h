// SPDX-License-Identifier: Apache-2.0
//
// Judges the facts of all nodes: one verdict for each check.  doc/reference/launching.md has the
// table of checks for users; the limits are here.  Pure.

#pragma once

#include <string>
#include <vector>

#include "launcher/health/node_info.h"
#include "launcher/health/verdict.h"

namespace launcher {

// By how much the memory of two nodes may differ: firmware keeps some of it for itself.
inline constexpr double kMemoryTolerance = 0.05;
// The locked memory that RDMA needs, for gradients and for the buffers of NCCL and MPI.
inline constexpr long long kMemlockNeeded = 1LL << 30;
// The free memory in /dev/shm that NVIDIA asks for in containers (--shm-size=1g).
inline constexpr long long kShmWanted = 1LL << 30;
// The free space in the working directory: five checkpoints of ResNet-50, of 205 MB each.
inline constexpr long long kDirectoryWanted = 1LL << 30;
// By how much clocks may differ.  They are read after a barrier, which even busy nodes leave within
// a tenth of a second.  A second is what logs and the times of files are put in order by.
inline constexpr double kClockToleranceSeconds = 1.0;
// How long a pair may take for kLinkMessageBytes there and back; the slowest network takes a tenth
// of it.
inline constexpr double kLinkWantedSeconds = 1.0;

struct PlannedNode {
  std::string host;
  int gpus = 0;  // that ranks will use
};

struct CheckedJob {
  std::vector<PlannedNode> nodes;
  std::string directory_error;  // why ddlrun could not make a file where ranks will start
  std::string launcher_end;     // why a node may not have answered
};

// `info` has one entry per node of `job`; one whose host is "" did not answer.
std::vector<Verdict> CheckNodes(const CheckedJob& job, const std::vector<NodeInfo>& info);

}  // namespace launcher
