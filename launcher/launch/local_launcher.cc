// SPDX-License-Identifier: Apache-2.0

#include "launcher/base/error.h"
#include "launcher/launch/launcher.h"

namespace launcher {

std::vector<ChildCommand> MakeLocalCommands(const LaunchRequest& job) {
  if (job.has_remote_ranks || job.plan.nodes.size() != 1) {
    std::string hosts;
    for (const NodePlacement& node : job.plan.nodes) hosts += " " + node.host;
    throw LaunchError(EX_CONFIG,
                      "--launcher=local starts ranks on this machine only, the plan is "
                      "for:" +
                          hosts + "; use --launcher=mpirun");
  }
  Environment environment = job.environment;
  for (const auto& [name, value] : job.rank_settings) environment[name] = value;
  const std::vector<std::string> strings = ToStrings(environment);

  std::vector<ChildCommand> commands;
  for (const RankPlacement& rank : job.plan.ranks) {
    ChildCommand command;
    command.rank = rank.rank;
    command.argv = {job.shim, "--rank", std::to_string(rank.rank), "--"};
    command.argv.insert(command.argv.end(), job.program.begin(), job.program.end());
    command.environment = strings;
    commands.push_back(std::move(command));
  }
  return commands;
}

}  // namespace launcher
