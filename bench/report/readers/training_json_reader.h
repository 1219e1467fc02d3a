// SPDX-License-Identifier: Apache-2.0
//
// The iterations in training.json (trainer/telemetry/formats/training_json.h): for runs whose log
// has no step, since log.json begins with the 21st.

#pragma once

#include <filesystem>

#include "bench/base/diagnostics.h"
#include "bench/report/readers/run.h"

namespace bench {

// Adds them to the measures of `run`.  A file that is none of this kind, or larger than 64 MiB, is
// a problem.
void ReadTrainingJson(const std::filesystem::path& path, RunRecord& run, Diagnostics& diagnostics);

}  // namespace bench
