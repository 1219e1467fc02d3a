// SPDX-License-Identifier: Apache-2.0
//
// ddlbench extract: folders of logs -> speeds, tables and DLPerf's JSON files.

#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "bench/base/diagnostics.h"
#include "bench/ddlbench/log_analysis/dlperf.h"

namespace bench {

struct ExtractOptions {
  std::vector<std::string> folders;
  std::string output_dir;  // of the JSON files; "": "result" in each folder
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

// All <case>/*.log of `folder`, by model.  Logs and cases that cannot be used are problems, and so
// is a folder that has no other.  Throws trainer::Error(EX_NOINPUT) when `folder` cannot be read.
ModelSpeeds ReadLogFolder(const std::filesystem::path& folder, const SpeedWindow& window,
                          Diagnostics& diagnostics);

// `folder` itself if it has cases, else those of its folders that have, by name; one of these that
// cannot be read is a problem.
// Throws trainer::Error(EX_NOINPUT) when `folder` is none or cannot be read.
std::vector<std::filesystem::path> FindLogFolders(const std::filesystem::path& folder,
                                                  Diagnostics& diagnostics);

// Reads every log folder, writes <output_dir>/<name of the log folder>_result.json and returns the
// tables as text.  A file that cannot be written is a problem, with EX_OSERR.
std::string Extract(const ExtractOptions& options, Diagnostics& diagnostics);

}  // namespace bench
