// SPDX-License-Identifier: Apache-2.0
//
// A job for tests of the commands that start it.

#pragma once

#include <string>
#include <vector>

#include "launcher/launch/launcher.h"

namespace launcher {

// Rank r is on the node nodes_of_ranks[r], of which 0 is called n1.
inline LaunchRequest JobOf(const std::vector<int>& nodes_of_ranks) {
  LaunchRequest job;
  for (const int node : nodes_of_ranks) {
    RankPlacement rank{.rank = static_cast<int>(job.plan.ranks.size()), .node = node};
    while (job.plan.nodes.size() <= static_cast<std::size_t>(node)) {
      job.plan.nodes.emplace_back().host = "n" + std::to_string(job.plan.nodes.size() + 1);
    }
    NodePlacement& own = job.plan.nodes[static_cast<std::size_t>(node)];
    rank.local_rank = static_cast<int>(own.ranks.size());
    own.ranks.push_back(rank.rank);
    job.plan.ranks.push_back(rank);
  }
  for (const NodePlacement& node : job.plan.nodes) job.hosts_of_job.push_back(node.host);
  job.program = {"python", "train.py", "--name=a b"};
  job.shim = "/opt/libexec/ddlrun/ddlrun-rank";
  job.run_directory = "/tmp/ddlrun.abc";
  job.plan_rankfile = "/tmp/ddlrun.abc/RANKFILE";
  job.mpirun = "/usr/bin/mpirun";
  job.mpi_type = "pmix";
  job.environment = {{"PATH", "/bin"}, {"HOSTNAME", "n1"}, {"CUDA_VISIBLE_DEVICES", "0"}};
  job.rank_settings = {{"DDLRUN_RANK_JOB", "{}"}, {"DDL_HOST_PORT", "2200"}};
  return job;
}

}  // namespace launcher
