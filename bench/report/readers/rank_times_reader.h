// SPDX-License-Identifier: Apache-2.0
//
// How long the phases of a step took on each rank: out of trace.json
// (trainer/telemetry/formats/trace_file), the mean over its steps, or out of the files for
// Prometheus (prometheus_file), the mean over the steps before their last writing.

#pragma once

#include <filesystem>
#include <map>

#include "bench/base/diagnostics.h"
#include "bench/report/readers/run.h"

namespace bench {

// Of every rank in a file of ddltraind --trace, which has an event in each line: read line by line,
// in memory that grows with the ranks alone.  Lines that cannot be used are problems, and so is a
// file without a step.  Throws trainer::Error(EX_NOINPUT) when it cannot be opened or read.
std::map<int, RankTimes> ReadTrace(const std::filesystem::path& path, Diagnostics& diagnostics);

// Adds what one file ddltraind-rank-*.prom says to `times`; nothing where the rank made no step.  A
// file that is none of ddltraind's is a problem.  Throws as above.
void ReadPrometheusFile(const std::filesystem::path& path, std::map<int, RankTimes>& times,
                        Diagnostics& diagnostics);

}  // namespace bench
