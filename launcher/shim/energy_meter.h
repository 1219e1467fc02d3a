// SPDX-License-Identifier: Apache-2.0
//
// What the GPUs of a job take on one node while its ranks run.  A process beside them reads NVML's
// counters (launcher/health/node/energy_main.cc): the shim, which is linked statically, can load no
// library, and NVML may take seconds to start.  Without the C++ library, since the shim uses it on
// the nodes of srun and mpirun, and ddlrun for ranks of its own.  For single-threaded callers.

#pragma once

#include <sys/types.h>

namespace launcher {

// What is put behind the path of the shim for that of the program that reads the counters.
inline constexpr char kEnergySuffix[] = "-energy";

// How long StopEnergyMeter waits for an answer, in milliseconds.
inline constexpr int kEnergyTimeoutMs = 1000;

// The first byte that comes once the counters were read at the start; the sum in digits follows it
// at the end.
inline constexpr char kEnergyIsReady = 'r';

struct EnergyMeter {
  pid_t pid = 0;    // 0: none
  int socket = -1;  // both ends of it are closed on exec; the meter stops where this one is closed
};

// Starts `program` for a job with `gpus` GPUs of this node: the first ones of `visible`, the value
// of CUDA_VISIBLE_DEVICES, or of the node where that is not set (null).  Returns at once.  The
// process has a session of its own, holds none of this process's streams, and ends with this
// process.  Where it cannot be started there is no meter, and nobody is told.
EnergyMeter StartEnergyMeter(const char* program, int gpus, const char* visible);

// The millijoules since the start, and the end of the meter.  -1 where that is not known: there is
// no meter, no NVML or no counter, or NVML had not started yet; and then without waiting.
long long StopEnergyMeter(EnergyMeter* meter);

}  // namespace launcher
