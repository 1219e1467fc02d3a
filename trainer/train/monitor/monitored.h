// SPDX-License-Identifier: Apache-2.0
//
// What a rank waits for, told to its HangWatchdog: its data and the other ranks.  All arguments
// outlive what is made.  Threads as HangWatchdog has them.

#pragma once

#include <memory>

#include "trainer/comm/communicator.h"
#include "trainer/data/data_loader.h"
#include "trainer/train/monitor/hang_watchdog.h"

namespace trainer {

// `source`, whose Next is told to `watch`.
std::unique_ptr<DataLoader> MakeMonitoredDataLoader(DataLoader& source, HangWatchdog& watch);

// `communicator`, whose waiting calls are told to `watch`.
std::unique_ptr<Communicator> MakeWatchedCommunicator(Communicator& communicator,
                                                      HangWatchdog& watch);

}  // namespace trainer
