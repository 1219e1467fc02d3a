// SPDX-License-Identifier: Apache-2.0

#include "trainer/program/control_endpoint.h"

#include <unistd.h>

#include <cstddef>
#include <exception>
#include <system_error>
#include <utility>
#include <vector>

#include "support/file.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/comm/rank_consistency.h"
#include "trainer/control/stack_dump_request.h"
#include "trainer/core/error.h"
#include "trainer/outputs/run_outputs.h"

namespace trainer {

ControlPointOptions MakeControlPointOptions(const Options& options, const launcher::RankInfo& rank,
                                            const EnvironmentLookup& get,
                                            const std::string& version) {
  ControlPointOptions point;
  point.results_dir = options.results_dir;
  point.identity = {.ranks = rank.world_size,
                    .host = HostOf(rank),
                    .pid = ::getpid(),
                    .version = version,
                    .job = get("SLURM_JOB_ID").value_or("")};
  point.node = rank.host;
  point.display_every = options.display_every;
  point.directory.run_directory = rank.run_dir;
  for (const char* name : {"XDG_RUNTIME_DIR", "TMPDIR"}) {
    if (const auto base = get(name)) point.directory.bases.emplace_back(*base);
  }
  point.directory.bases.emplace_back("/tmp");
  return point;
}

ControlPoint::ControlPoint(const ControlPointOptions& options, Logger log)
    : log_(std::move(log)),
      file_(options.results_dir / kControlAddressName),
      address_{.host = HostName(),
               .node = options.node,
               .job = options.identity.job,
               .pid = options.identity.pid,
               .socket = "",
               .last = std::nullopt},
      control_(options.identity, options.display_every) {
  control_.OnStacks(options.ask_for_stacks);
  try {
    directory_ = std::make_unique<SocketDirectory>(options.directory);
    address_.socket = directory_->socket().string();
    server_ = std::make_unique<ControlServer>(address_.socket, control_, ::geteuid());
    Write();
  } catch (const std::exception& error) {
    server_.reset();
    directory_.reset();
    log_->warn("ddlctl cannot reach this training: {}", error.what());
    // Of the training before, where there was one.
    std::error_code ignored;
    std::filesystem::remove(file_, ignored);
  }
}

ControlPoint::~ControlPoint() { End(RunEvent::kFailure); }

void ControlPoint::End(RunEvent event) {
  if (std::exchange(has_ended_, true)) return;
  control_.OnEvent(event);
  if (server_ == nullptr) return;
  address_.last = control_.status();
  try {
    // Before the socket is gone: who finds nobody there finds these words.
    Write();
  } catch (const std::exception& error) {
    log_->warn("ddlctl will not know that this training has ended: {}", error.what());
  }
  server_.reset();
  directory_.reset();
}

void ControlPoint::Write() {
  const int error = support::ReplaceFile(file_, FormatAddress(address_));
  if (error != 0) throw OsError("cannot write " + file_.string(), error);
}

std::unique_ptr<ControlPoint> MakeControlPoint(const Options& options,
                                               const launcher::RankInfo& rank,
                                               const EnvironmentLookup& get,
                                               const std::string& version, const Logger& log,
                                               StackDumpService* stacks) {
  if (!KeepsWeights(options.mode)) return nullptr;
  ControlPointOptions point = MakeControlPointOptions(options, rank, get, version);
  if (stacks != nullptr) point.ask_for_stacks = [stacks] { return stacks->Ask(); };
  return std::make_unique<ControlPoint>(point, log);
}

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
                                 .host = HostOf(rank),
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
