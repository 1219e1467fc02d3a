// SPDX-License-Identifier: Apache-2.0
//
// What log.json says of a launch besides its options, for those who compare runs later: a line
// METADATA of the metric "run".  Pure.

#pragma once

#include <string>
#include <vector>

#include "launcher/protocol/rank_environment.h"
#include "trainer/telemetry/text/python_format.h"

namespace trainer {

struct RunMetadata {
  std::string version;                 // of the program
  std::vector<std::string> arguments;  // of its command line
  std::string backend;                 // as it describes itself
  std::string communication;           // the same
  std::string job;                     // "" outside Slurm
};

// program, command, ranks, nodes, host, backend, communication and, inside Slurm, job.  `host` is
// that of rank 0.
LogFields DescribeLaunch(const RunMetadata& items, const launcher::RankInfo& rank,
                         const std::string& host);

}  // namespace trainer
