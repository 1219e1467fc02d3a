// SPDX-License-Identifier: Apache-2.0
//
// The log of a run: RESULTS_DIR/log.json, or what the run printed on standard output, where DLL and
// NVLOG lines stand among others.  Read line by line, in memory that does not grow with the file.

#pragma once

#include <filesystem>

#include "bench/base/diagnostics.h"
#include "bench/report/readers/run.h"

namespace bench {

// Adds what the log says to `run`, and leaves out the first `skip_steps` of its steps in each
// launch.  Launches with other options that a step depends on (ranks, images of a rank, batches)
// begin the measures anew, which is noted.  Lines that cannot be used are problems, and so is a log
// without any line that can. Throws trainer::Error(EX_NOINPUT) when the file cannot be opened or
// read.
void ReadRunLog(const std::filesystem::path& path, int skip_steps, RunRecord& run,
                Diagnostics& diagnostics);

}  // namespace bench
