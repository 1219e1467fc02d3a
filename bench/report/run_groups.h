// SPDX-License-Identifier: Apache-2.0
//
// Which runs were made alike, and what tells the others apart.  Pure.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bench/report/readers/run.h"
#include "bench/report/report_model.h"

namespace bench {

// One for each run: the path without what all of them begin with and, where all are equally deep,
// without the parts that are the same in all; of a single run its last part.
std::vector<std::string> NamesOfRuns(const std::vector<RunRecord>& runs);

// In the order of ranks, then of the first run of each.  Their speeds are still to come.
std::vector<RunGroup> GroupsOf(const std::vector<RunRecord>& runs);

// `groups` with their speeds.
std::vector<Scaling> ScalingsOf(const std::vector<RunRecord>& runs,
                                const std::vector<RunGroup>& groups);

// All options and facts of which two runs have different values, but for where they write to.
std::vector<DifferingSetting> DifferingSettingsOf(const std::vector<RunRecord>& runs);

}  // namespace bench
