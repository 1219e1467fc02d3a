// SPDX-License-Identifier: Apache-2.0

#include "trainer/outputs/launch_description.h"

#include <cstdint>

#include "support/quoting.h"

namespace trainer {

LogFields DescribeLaunch(const LaunchFacts& facts, const launcher::RankInfo& rank,
                         const std::string& host) {
  std::vector<std::string> command = {"ddltraind"};
  command.insert(command.end(), facts.arguments.begin(), facts.arguments.end());
  LogFields fields = {{"program", "ddltraind " + facts.version},
                      {"command", support::QuoteCommand(command)},
                      {"ranks", std::int64_t{rank.world_size}},
                      {"nodes", std::int64_t{rank.node_count}},
                      {"host", host},
                      {"backend", facts.backend},
                      {"communication", facts.communication}};
  if (!facts.job.empty()) fields.emplace_back("job", facts.job);
  return fields;
}

}  // namespace trainer
