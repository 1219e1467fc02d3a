// SPDX-License-Identifier: Apache-2.0
//
// ddlbench compare: reports in Mila's form beside a table of targets.

#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bench/base/diagnostics.h"
#include "bench/base/statistics.h"

namespace bench {

struct CompareOptions {
  std::string targets;               // CSV file
  std::vector<std::string> reports;  // files, and directories with *.json
};

// A row of Mila's tables, such as target_v100.csv: bench,target,perf_target,sd_target.
struct Target {
  double items_per_second = 0;
  std::optional<double> min_share;   // perf_target: of the target, to pass
  std::optional<double> largest_sd;  // sd_target: over the result, to pass
};
using Targets = std::map<std::string, Target>;

// Throws trainer::Error(EX_NOINPUT) when the file cannot be read, EX_DATAERR naming file and line
// when it has no such header.  Rows that are wrong are problems, and left out.
Targets ReadTargets(const std::filesystem::path& path, Diagnostics& diagnostics);

// items/s of every report, by benchmark.  Files that are no reports are problems; of directories
// those files are read, however deep they lie, whose names are of the form fast.convnet.R0.*.json.
std::map<std::string, std::vector<double>> ReadReports(const std::vector<std::string>& paths,
                                                       Diagnostics& diagnostics);

// bench, target, result (the mean), sd (of a sample), sd%, diff (result over target less 1), runs
// and, where the targets say what it takes, pass.  What is not known is "-".
std::string FormatComparison(const std::map<std::string, std::vector<double>>& results,
                             const Targets& targets);

// The table as text.  Benchmarks without a target are noted.
std::string Compare(const CompareOptions& options, Diagnostics& diagnostics);

}  // namespace bench
