// SPDX-License-Identifier: Apache-2.0

#include "ddlctl/remote.h"

#include "support/quoting.h"

namespace ddlctl {

std::vector<std::string> SrunCommand(const trainer::ControlAddress& address,
                                     const RemoteCall& call) {
  if (call.job.empty()) return {};
  const std::string& node = address.node.empty() ? address.host : address.node;
  std::vector<std::string> command = {
      "srun",       "--overlap", "--jobid=" + call.job, "--nodelist=" + node, "--nodes=1",
      "--ntasks=1", "--mem=0",   "--gres=none",         "--mpi=none",         "--quiet"};
  command.emplace_back(call.on_terminal ? "--pty" : "--input=none");
  command.push_back(call.program);
  command.insert(command.end(), call.arguments.begin(), call.arguments.end());
  command.emplace_back("--srun=never");
  return command;
}

std::string WhatToType(const trainer::ControlAddress& address, const RemoteCall& call) {
  std::vector<std::string> words = {"ddlctl"};
  words.insert(words.end(), call.arguments.begin(), call.arguments.end());
  return "log in to " + address.host + " and type: " + support::QuoteCommand(words);
}

}  // namespace ddlctl
