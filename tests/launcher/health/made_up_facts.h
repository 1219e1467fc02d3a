// SPDX-License-Identifier: Apache-2.0
//
// Nodes in good health, for tests to break.

#pragma once

#include <string>
#include <vector>

#include "launcher/health/judge.h"

namespace launcher {

inline NodeFacts HealthyNode(int node, int gpus = 4) {
  NodeFacts facts;
  facts.node = node;
  facts.host = "n" + std::to_string(node + 1);
  facts.machine = facts.host;
  facts.cpu_model = "POWER9, altivec supported";
  facts.cpus = 128;
  facts.memory_bytes = 512LL << 30;
  facts.kernel = "4.18.0";
  facts.system = "Red Hat Enterprise Linux 8.6";
  facts.gpu_source = gpus > 0 ? "NVML" : "";
  for (int gpu = 0; gpu < gpus; ++gpu) {
    GpuFacts& made = facts.gpus.emplace_back();
    made.model = "Tesla V100-SXM2-16GB";
    made.uncorrected_errors = 0;
    made.nvlinks = 6;
    made.pcie_lanes = 16;
    made.pcie_lanes_most = 16;
  }
  facts.nvidia_devices = gpus;
  facts.granted_gpus = gpus;
  for (const char* name : {"mlx5_0:1", "mlx5_3:1"}) {
    facts.ports.push_back({name, "ACTIVE", 100, "InfiniBand"});
  }
  facts.memlock_bytes = -1;
  facts.shm_free_bytes = 200LL << 30;
  facts.directory = {"/nobackup/work", true, "", 1LL << 40};
  facts.master = {"n1", ""};
  facts.mpi = "Open MPI v4.1.4";
  facts.pmix = "4.2.2";
  facts.pmix_server = "4.2.2";
  facts.ucx = "1.13.1";
  facts.exchange.clock_seconds = 1.6e9;
  facts.exchange.links_tested = true;
  return facts;
}

// n1, n2, ... in good health, and the job that was planned for them.
struct MadeUpJob {
  explicit MadeUpJob(int count, int gpus = 4) {
    for (int node = 0; node < count; ++node) {
      facts.push_back(HealthyNode(node, gpus));
      facts.back().exchange.links_ok = count - 1 - node;
      if (node + 1 < count) facts.back().exchange.slowest = {node + 1, "", 0.001 * (node + 1)};
      job.nodes.push_back({facts.back().host, gpus});
    }
  }

  // The verdict of `check`.
  Verdict Of(const std::string& check) const {
    for (const Verdict& verdict : JudgeNodes(job, facts)) {
      if (verdict.check == check) return verdict;
    }
    return {check + " is no check", Status::kFail, "", ""};
  }

  CheckedJob job;
  std::vector<NodeFacts> facts;
};

}  // namespace launcher
