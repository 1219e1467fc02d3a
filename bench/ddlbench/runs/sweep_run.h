// SPDX-License-Identifier: Apache-2.0
//
// ddlbench sweep: makes the measurements of a matrix (sweep.h), or submits them.

#pragma once

#include <ostream>

#include "bench/ddlbench/runs/sweep.h"

namespace bench {

// Makes what is missing of the matrix, one run after the other: a log that is there is not made
// again, and a run that fails leaves <log>.failed and does not keep the others from being made.
// Then prints the tables to `out`; with options.only, when that was the last one.  With
// options.submit sbatch is given all of it as an array; with options.dry_run nothing is started or
// written, and `out` says what would be.  Progress goes to `messages`.
// Returns the exit code of the first run that failed, 128 + n when signal n stopped the sweep, the
// code of a problem with the logs, or 0.  Throws trainer::Error.
int RunSweep(SweepOptions options, const Programs& programs, std::ostream& out,
             std::ostream& messages);

}  // namespace bench
