// SPDX-License-Identifier: Apache-2.0
//
// From the facts of all nodes to one verdict per check.  doc/reference.md has the table of checks
// for users; the limits are here.  Pure.

#pragma once

#include <string>
#include <vector>

#include "launcher/health/node_facts.h"
#include "launcher/health/verdict.h"

namespace launcher {

// Memory of nodes of one kind differs by what firmware keeps for itself.
inline constexpr double kMemoryTolerance = 0.05;
// Registered memory that RDMA needs: gradients, buffers of NCCL and MPI.
inline constexpr long long kMemlockNeeded = 1LL << 30;
// What NVIDIA asks for in containers (--shm-size=1g).
inline constexpr long long kShmWanted = 1LL << 30;
// A handful of ResNet-50 checkpoints of 205 MB.
inline constexpr long long kDirectoryWanted = 1LL << 30;
// Clocks are read after a barrier that nodes leave within a tenth of a second even when busy; logs
// and file times of a shared file system are ordered by the second.
inline constexpr double kClockToleranceSeconds = 1.0;
// A quarter of a megabyte there and back over the slowest fabric there is takes a tenth of this.
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

// `facts` has one entry per node of `job`; one whose host is "" did not answer.
std::vector<Verdict> JudgeNodes(const CheckedJob& job, const std::vector<NodeFacts>& facts);

}  // namespace launcher
