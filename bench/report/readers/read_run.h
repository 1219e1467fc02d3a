// SPDX-License-Identifier: Apache-2.0
//
// Which directories are runs, and all that the files of one say.

#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "bench/base/diagnostics.h"
#include "bench/report/readers/run.h"

namespace bench {

// A run: the results directory of one, or a log alone.
struct RunFiles {
  std::string path;                                // as it was named or found
  std::filesystem::path log;                       // "" where there is none
  std::filesystem::path training_json;             // the same
  std::filesystem::path trace;                     // the same
  std::vector<std::filesystem::path> prometheus;   // ddltraind-rank-*.prom
  std::vector<std::filesystem::path> gpu_samples;  // *.csv
};

// A directory with log.json, training.json or trace.json is a run; of another directory those that
// lie in it, however deep, by name.  A file is a log; one named log.json stands for its directory.
// Files for Prometheus and of GPUs may also lie in a directory of the run.  What is not there, or
// has no run, is a problem; what is named twice counts once.  Symbolic links to directories are
// followed only where they are named themselves.
std::vector<RunFiles> FindRuns(const std::vector<std::string>& paths, Diagnostics& diagnostics);

// What cannot be read is a problem, and the rest is used; nothing when there is no rest.
// `skip_steps`: ReadRunLog.
std::optional<RunRecord> ReadRun(const RunFiles& files, int skip_steps, Diagnostics& diagnostics);

}  // namespace bench
