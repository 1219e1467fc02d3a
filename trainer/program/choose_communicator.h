// SPDX-License-Identifier: Apache-2.0
//
// By what the ranks talk: the communicator that they meet by, and the one that sums their
// gradients.

#pragma once

#include <memory>

#include "launcher/protocol/rank_environment.h"
#include "trainer/backend/backend.h"
#include "trainer/comm/communicator.h"
#include "trainer/core/span_recorder.h"
#include "trainer/options/options.h"
#include "trainer/telemetry/text/log.h"
#include "trainer/train/monitor/hang_watchdog.h"

namespace trainer {

// Waits until all ranks of the run are there, which `watch` looks after.  `watch` and `spans` may
// be null.  Throws as MakeCommunicator does.
std::unique_ptr<Communicator> ConnectRanks(const launcher::RankInfo& rank, HangWatchdog* watch,
                                           SpanRecorder* spans);

// Collective.  NCCL beside `host`, or null where `host` sums the gradients itself, by --comm and
// what is there.  Throws Error(EX_CONFIG) where NCCL was asked for and cannot be.
std::unique_ptr<Communicator> MakeGradientCommunicator(const Options& options, Backend& backend,
                                                       Communicator& host, const Logger& log);

}  // namespace trainer
