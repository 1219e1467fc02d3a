// SPDX-License-Identifier: Apache-2.0
//
// What lets people ask a training for the stacks of its ranks (train/monitor/stack_dump_service.h).

#pragma once

#include <functional>
#include <memory>
#include <string>

#include "launcher/protocol/rank_environment.h"
#include "trainer/comm/communicator.h"
#include "trainer/options/options.h"
#include "trainer/telemetry/text/log.h"
#include "trainer/train/monitor/stack_dump_service.h"

namespace trainer {

// Collective, once options.results_dir is there; null in modes that keep no weights, and on a rank
// that cannot have it, which is a warning.  `doing`: what the rank does, or null.
std::unique_ptr<StackDumpService> StartStackDumpService(const Options& options,
                                                        const launcher::RankInfo& rank,
                                                        Communicator& communicator,
                                                        std::function<std::string()> doing,
                                                        const Logger& log);

}  // namespace trainer
