// SPDX-License-Identifier: Apache-2.0
//
// How ddlctl reaches a running training: on rank 0 a socket in a private directory, and the small
// file in --results_dir that says where it is; on every rank the stack dump service.  A training
// does without what it cannot have: that is a warning.

#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "launcher/protocol/rank_environment.h"
#include "trainer/comm/communicator.h"
#include "trainer/control/control_message.h"
#include "trainer/control/control_socket.h"
#include "trainer/control/run_control.h"
#include "trainer/options/options.h"
#include "trainer/program/launch_environment.h"
#include "trainer/telemetry/text/log.h"
#include "trainer/train/monitor/stack_dump_service.h"

namespace trainer {

struct ControlPointOptions {
  std::filesystem::path results_dir;
  RunIdentity identity;
  std::string node;  // of rank 0, as the job names it, or ""
  std::int64_t display_every = 0;
  SocketDirectoryOptions directory;
  // As RunControl::OnStacks has it, or null; outlives the ControlPoint.
  std::function<std::uint64_t()> ask_for_stacks = nullptr;
};

// `version`: of the program.
ControlPointOptions MakeControlPointOptions(const Options& options, const launcher::RankInfo& rank,
                                            const EnvironmentLookup& get,
                                            const std::string& version);

class ControlPoint {
 public:
  // From here on the training can be asked.  REQUIRES: results_dir is there.
  ControlPoint(const ControlPointOptions& options, Logger log);
  // As End(RunEvent::kFailure), where there was no End.
  ~ControlPoint();
  ControlPoint(const ControlPoint&) = delete;
  ControlPoint& operator=(const ControlPoint&) = delete;

  RunControl& control() { return control_; }

  // The training is over: nobody is answered any more, and the file has its last words.
  void End(RunEvent event);

 private:
  void Write();

  const Logger log_;
  const std::filesystem::path file_;
  ControlAddress address_;
  RunControl control_;
  std::unique_ptr<SocketDirectory> directory_;
  std::unique_ptr<ControlServer> server_;
  bool has_ended_ = false;
};

// For rank 0, once options.results_dir is there; null in modes that keep no weights.  `stacks` may
// be null and outlives it.
std::unique_ptr<ControlPoint> MakeControlPoint(const Options& options,
                                               const launcher::RankInfo& rank,
                                               const EnvironmentLookup& get,
                                               const std::string& version, const Logger& log,
                                               StackDumpService* stacks = nullptr);

// Collective, once options.results_dir is there; null in modes that keep no weights, and on a rank
// that cannot have it, which is a warning.  `doing`: what the rank does, or null.
std::unique_ptr<StackDumpService> StartStackDumpService(const Options& options,
                                                        const launcher::RankInfo& rank,
                                                        Communicator& communicator,
                                                        std::function<std::string()> doing,
                                                        const Logger& log);

}  // namespace trainer
