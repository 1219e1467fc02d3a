// SPDX-License-Identifier: Apache-2.0
//
// The hang watch of a run (train/monitor/hang_watchdog.h) as --hang_floor_seconds asks for it.

#pragma once

#include <memory>

#include "launcher/protocol/rank_environment.h"
#include "trainer/options/options.h"
#include "trainer/telemetry/text/redrawn_line.h"
#include "trainer/train/monitor/hang_watchdog.h"

namespace trainer {

// Null if nobody is to look for hung ranks.  On a hang it prints the report, behind `line`, and
// ends the process with EX_SOFTWARE; the starter ends the other ranks.
std::unique_ptr<HangWatchdog> StartHangWatchdog(const Options& options,
                                                const launcher::RankInfo& rank, RedrawnLine& line);

}  // namespace trainer
