// SPDX-License-Identifier: Apache-2.0
//
// The environment of a rank.

#pragma once

#include <stdlib.h>
#include <string.h>

#include "launcher/protocol/local_rank_job.h"

namespace launcher {

// The value of a variable of this process; "" where it is not set.
inline const char* Get(const char* name) {
  const char* value = getenv(name);
  return value != nullptr ? value : "";
}

inline bool Is(const char* a, const char* b) { return strcmp(a, b) == 0; }

// Whether the plan has CPUs for this rank, which no other rank uses.
bool HasOwnCpus(const LocalRankJob& job);

// Sets the variables of protocol/rank_variables.h, those that the job's settings ask for, and those
// that frameworks read of the step of srun; removes those of the daemon of mpirun.  `usable_cpus`
// is the number of CPUs that the rank may run on, `program` what it runs.
void SetEnvironment(const LocalRankJob& job, int usable_cpus, char* const* program);

}  // namespace launcher
