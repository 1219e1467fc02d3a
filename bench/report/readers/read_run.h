// SPDX-License-Identifier: Apache-2.0
//
// All that the files of one run say.

#pragma once

#include <optional>

#include "bench/base/diagnostics.h"
#include "bench/report/readers/run.h"
#include "bench/report/readers/run_files.h"

namespace bench {

// What cannot be read is a problem, and the rest is used; nothing when there is no rest.
// `skip_steps`: ReadRunLog.
std::optional<RunRecord> ReadRun(const RunFiles& files, int skip_steps, Diagnostics& diagnostics);

}  // namespace bench
