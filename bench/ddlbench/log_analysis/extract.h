// SPDX-License-Identifier: Apache-2.0
//
// ddlbench extract: directories of logs -> speeds, tables and DLPerf's JSON files.

#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "bench/base/diagnostics.h"
#include "bench/ddlbench/log_analysis/dlperf.h"

namespace bench {

struct ExtractOptions {
  std::vector<std::string> directories;
  std::string output_dir;  // of the JSON files; "": "result" in each directory
  std::string rule = "rate";
  int warmup_batches = 20;
  int train_batches = 120;
};

// Throws trainer::Error(EX_USAGE) for numbers that make no sense together.
SpeedWindow WindowOf(const ExtractOptions& options);

// The speed of the log <case>/<name> at `path`.  Nothing when it cannot be used: a line without its
// number, fewer lines than needed, other ranks or another batch than the names say; that is a
// problem, which names file and line.
std::optional<double> ReadSpeed(const std::filesystem::path& path, const Case& at,
                                const RunName& name, const SpeedWindow& window,
                                Diagnostics& diagnostics);

// All <case>/*.log of `directory`, by model.  Logs and cases that cannot be used are problems, and
// so is a directory that has no other.  Throws trainer::Error(EX_NOINPUT) when `directory` cannot
// be read.
ModelSpeeds ReadLogDirectory(const std::filesystem::path& directory, const SpeedWindow& window,
                             Diagnostics& diagnostics);

// `directory` itself if it has cases, else those of its directories that have, by name; one of
// these that cannot be read is a problem. Throws trainer::Error(EX_NOINPUT) when `directory` is
// none or cannot be read.
std::vector<std::filesystem::path> FindLogDirectories(const std::filesystem::path& directory,
                                                      Diagnostics& diagnostics);

// Reads every log directory, writes <output_dir>/<name of the log directory>_result.json and
// returns the tables as text.  A file that cannot be written is a problem, with EX_OSERR.
std::string Extract(const ExtractOptions& options, Diagnostics& diagnostics);

}  // namespace bench
