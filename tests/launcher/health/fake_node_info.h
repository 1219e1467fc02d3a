// SPDX-License-Identifier: Apache-2.0
//
// Nodes in good health, for tests to break.

#pragma once

#include <string>
#include <vector>

#include "launcher/health/check_rules.h"

namespace launcher {

inline NodeInfo HealthyNode(int node, int gpus = 4) {
  NodeInfo info{.node = node, .host = "n" + std::to_string(node + 1)};
  info.machine = info.host;
  info.cpu_model = "POWER9, altivec supported";
  info.cpus = 128;
  info.memory_bytes = 512LL << 30;
  info.kernel = "4.18.0";
  info.system = "Red Hat Enterprise Linux 8.6";
  info.gpu_source = gpus > 0 ? "NVML" : "";
  for (int gpu = 0; gpu < gpus; ++gpu) {
    GpuInfo& made = info.gpus.emplace_back();
    made.model = "Tesla V100-SXM2-16GB";
    made.uncorrected_errors = 0;
    made.nvlinks = 6;
    made.pcie_lanes = 16;
    made.pcie_lanes_max = 16;
  }
  info.nvidia_devices = gpus;
  info.granted_gpus = gpus;
  for (const char* name : {"mlx5_0:1", "mlx5_3:1"}) {
    info.ports.push_back({name, "ACTIVE", 100, "InfiniBand"});
  }
  info.memlock_bytes = -1;
  info.shm_free_bytes = 200LL << 30;
  info.directory = {"/nobackup/work", true, "", 1LL << 40};
  info.master = {"n1", ""};
  info.mpi = "Open MPI v4.1.4";
  info.pmix = "4.2.2";
  info.pmix_server = "4.2.2";
  info.ucx = "1.13.1";
  info.exchange.clock_seconds = 1.6e9;
  info.exchange.links_tested = true;
  return info;
}

// n1, n2, ... in good health, and the job that was planned for them.
struct FakeJob {
  explicit FakeJob(int count, int gpus = 4) {
    for (int node = 0; node < count; ++node) {
      info.push_back(HealthyNode(node, gpus));
      info.back().exchange.links_ok = count - 1 - node;
      if (node + 1 < count) info.back().exchange.slowest = {node + 1, "", 0.001 * (node + 1)};
      job.nodes.push_back({info.back().host, gpus});
    }
  }

  // The verdict of `check`.
  Verdict Of(const std::string& check) const {
    for (const Verdict& verdict : CheckNodes(job, info)) {
      if (verdict.check == check) return verdict;
    }
    return {check + " is no check", Status::kFail, "", ""};
  }

  CheckedJob job;
  std::vector<NodeInfo> info;
};

}  // namespace launcher
