// SPDX-License-Identifier: Apache-2.0

#include "trainer/program/start_stack_dump_service.h"

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <utility>
#include <vector>

#include "trainer/checkpoint/names.h"
#include "trainer/comm/rank_consistency.h"
#include "trainer/control/stack_dump_request.h"

namespace trainer {

std::unique_ptr<StackDumpService> StartStackDumpService(const Options& options,
                                                        const launcher::RankInfo& rank,
                                                        Communicator& communicator,
                                                        std::function<std::string()> doing,
                                                        const Logger& log) {
  namespace fs = std::filesystem;
  if (!KeepsWeights(options.mode)) return nullptr;
  StackDumpServiceOptions own = {.request = fs::path(options.results_dir) / kStackDumpRequestName,
                                 .model_dir = ModelDirectory(options),
                                 .rank = communicator.rank(),
                                 .host = rank.host.empty() ? HostName() : rank.host,
                                 .doing = std::move(doing)};
  const std::vector<std::string> hosts = GatherTexts(communicator, own.host);
  const std::vector<std::uint64_t> processes =
      GatherNumbers(static_cast<std::uint64_t>(::getpid()), communicator);
  own.seconds_between_looks = StackDumpPollSeconds(hosts.size());
  std::error_code unknown;
  const fs::path model_dir = fs::absolute(own.model_dir, unknown);
  StackDumpRequest request = {
      .directory = (unknown ? own.model_dir : model_dir) / kStackDumpDirectoryName, .ranks = {}};
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    request.ranks.push_back({hosts[i], static_cast<std::int64_t>(processes[i])});
  }
  std::string problem;
  try {
    if (own.rank == 0) MakeStackDumpRequest(own.request, request);
  } catch (const std::exception& error) {
    problem = error.what();
  }
  // Nobody looks at what a launch before has left.
  communicator.Barrier();
  try {
    if (problem.empty()) return std::make_unique<StackDumpService>(std::move(own));
  } catch (const std::exception& error) {
    problem = error.what();
  }
  log->warn("ddlctl stacks will not reach this rank: {}", problem);
  return nullptr;
}

}  // namespace trainer
