// SPDX-License-Identifier: Apache-2.0
//
// Clocks, power and temperature of GPUs, out of CSV files in the form of nvprof
// (--print-gpu-trace --system-profiling on --csv):
//   ==4711== ...                                    lines with "==" say nothing here
//   "Start","Duration",...,"Device",...,"System",...,"Name",...        titles
//   s,ms,...                                                            their units
//   0.25,,...,"Tesla V100-SXM2-16GB (0)",...,"1530/877",...,"[SM/Memory Clock (MHz)]",...
//   0.25,,...,"Tesla V100-SXM2-16GB (0)",...,"41",...,"[Temperature (C)]",...
//   0.25,,...,"Tesla V100-SXM2-16GB (0)",...,"187500/300000",...,"[Power/Limit (mW)]",...
// Rows of kernels are passed over.  Read line by line, in memory that does not grow with the file.

#pragma once

#include <filesystem>
#include <vector>

#include "bench/base/diagnostics.h"
#include "bench/report/readers/run.h"

namespace bench {

// The GPUs of one file, by name; none when it is a CSV file of another kind.  Rows that cannot be
// used are problems.  Throws trainer::Error(EX_NOINPUT) when it cannot be opened or read.
std::vector<GpuSamples> ReadGpuSamples(const std::filesystem::path& path, Diagnostics& diagnostics);

}  // namespace bench
