// SPDX-License-Identifier: Apache-2.0
//
// Jobs that hang, for tests.

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "launcher/diagnose/diagnosis.h"

namespace launcher {

inline const std::vector<std::string> kInAllReduce = {
    "all_reduce (torch/distributed/distributed_c10d.py:2501)",
    "wrapper (torch/distributed/c10d_logger.py:81)", "sync (me/job/train.py:50)",
    "<module> (me/job/train.py:90)"};

inline const std::vector<std::string> kInBackward = {
    "backward (dist-packages/torch/autograd/__init__.py:197)",
    "Tensor.backward (dist-packages/torch/_tensor.py:488)", "<module> (me/job/train.py:40)"};

// A process that has not moved between two looks.
inline ProcessFacts Still(char state, std::string call, std::string wait = "",
                          std::string object = "", std::vector<std::string> stack = {}) {
  ProcessFacts process;
  process.pid = 4711;
  process.parent = 100;
  process.name = "python3";
  process.state = state;
  process.call = std::move(call);
  process.wait = std::move(wait);
  process.object = std::move(object);
  process.is_still = true;
  process.stack = std::move(stack);
  return process;
}

inline ProcessFacts Receives() { return Still('S', "recvfrom", "sk_wait_data", "a socket"); }
inline ProcessFacts Reduces() { return Still('S', "futex", "futex_do_wait", "", kInAllReduce); }
inline ProcessFacts Sleeps() { return Still('S', "clock_nanosleep", "hrtimer_nanosleep"); }

inline ProcessFacts OnFileSystem(ProcessFacts process, std::string file_system) {
  process.file_system = std::move(file_system);
  return process;
}

inline ProcessFacts Moving(ProcessFacts process) {
  process.is_still = false;
  return process;
}

inline ProcessFacts Busy(double cpus, std::vector<std::string> stack = {}) {
  ProcessFacts process = Moving(Still(cpus > 0.9 ? 'R' : 'S', "", "", "", std::move(stack)));
  process.cpus = cpus;
  return process;
}

inline ProcessFacts ChildOf(const ProcessFacts& parent, ProcessFacts process) {
  process.parent = parent.pid;
  process.pid = parent.pid + 2;
  return process;
}

using Tree = std::vector<ProcessFacts>;

// Ranks 0, 1, ... of n1 and n2, two on each node, rank i with process 4711.
inline HangingJob JobOf(const std::vector<Tree>& ranks, int world = 0) {
  HangingJob job;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const std::string host = "n" + std::to_string(i / 2 + 1);
    if (job.nodes.empty() || job.nodes.back().host != host) job.nodes.emplace_back().host = host;
    job.nodes.back().ranks.push_back({.rank = static_cast<int>(i),
                                      .world = world > 0 ? world : static_cast<int>(ranks.size()),
                                      .host = host,
                                      .memory_kills = 0,
                                      .processes = ranks[i]});
  }
  return job;
}

// Three ranks that are alike, and rank 3 on n2.
inline HangingJob WithOdd(const ProcessFacts& others, const Tree& odd) {
  return JobOf({{others}, {others}, {others}, odd});
}

}  // namespace launcher
