// SPDX-License-Identifier: Apache-2.0
//
// What a rank computes with.

#pragma once

#include <memory>

#include "launcher/protocol/rank_environment.h"
#include "trainer/backend/registry.h"
#include "trainer/options/options.h"
#include "trainer/telemetry/text/log.h"

namespace trainer {

// The back end that --backend asks for.  Throws Error(EX_UNAVAILABLE) for --backend=auto in a job
// that was granted GPUs and has none that works: it is not to train on a few cores, a hundred times
// slower, for as long as its time limit lets it.  And as MakeBackend throws.
// `plans`: as BackendOptions has them.
std::unique_ptr<Backend> ChooseBackendOf(const Options& options, const launcher::RankInfo& rank,
                                         std::shared_ptr<PlanCache> plans, const Logger& log);

}  // namespace trainer
