// SPDX-License-Identifier: Apache-2.0
//
// What PyTorch itself knows of a job that hangs: the collectives of NCCL that each rank has called.
// Its process group keeps the last of them, and writes them into a file at a byte that comes
// through a FIFO, which it looks at once a second:
// https://docs.pytorch.org/tutorials/unstable/flight_recorder_tutorial.html

#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/environment.h"
#include "launcher/diagnose/facts.h"

namespace launcher {

// The last collectives by process group, from a dump; nullopt of any other text, and of a part of
// one.  Pure.
std::optional<std::vector<RecordedGroup>> ParseFlightRecord(std::string_view dump);

// Asks the recorder of a process that was started with `environment`.  None where it has none or
// does not answer in time.  The process goes on meanwhile.  A file system that hangs hangs this.
std::vector<RecordedGroup> AskFlightRecorder(pid_t pid, const Environment& environment,
                                             std::chrono::steady_clock::time_point deadline);

}  // namespace launcher
