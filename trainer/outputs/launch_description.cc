// SPDX-License-Identifier: Apache-2.0

#include "trainer/outputs/launch_description.h"

#include <cstdint>

#include "support/quoting.h"

namespace trainer {

LogFields DescribeLaunch(const RunMetadata& items, const launcher::RankInfo& rank,
                         const std::string& host) {
  std::vector<std::string> command = {"ddltraind"};
  command.insert(command.end(), items.arguments.begin(), items.arguments.end());
  LogFields fields = {{"program", "ddltraind " + items.version},
                      {"command", support::QuoteCommand(command)},
                      {"ranks", std::int64_t{rank.world_size}},
                      {"nodes", std::int64_t{rank.node_count}},
                      {"host", host},
                      {"backend", items.backend},
                      {"communication", items.communication}};
  if (!items.job.empty()) fields.emplace_back("job", items.job);
  return fields;
}

}  // namespace trainer
