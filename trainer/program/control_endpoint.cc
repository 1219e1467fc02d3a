// SPDX-License-Identifier: Apache-2.0

#include "trainer/program/control_endpoint.h"

#include <unistd.h>

#include <exception>
#include <system_error>
#include <utility>

#include "support/file.h"
#include "trainer/checkpoint/names.h"
#include "trainer/core/error.h"

namespace trainer {

ControlPointOptions MakeControlPointOptions(const Options& options, const launcher::RankInfo& rank,
                                            const EnvironmentLookup& get,
                                            const std::string& version) {
  ControlPointOptions point;
  point.results_dir = options.results_dir;
  point.identity = {.ranks = rank.world_size,
                    .host = rank.host.empty() ? HostName() : rank.host,
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

}  // namespace trainer
