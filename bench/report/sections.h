// SPDX-License-Identifier: Apache-2.0
//
// What a report shows of its runs, section by section: speed, curves, scaling, differences, phases
// of a step, GPUs, energy, accuracy, environment.  Pure.

#pragma once

#include <string>
#include <vector>

#include "bench/report/charts/document.h"
#include "bench/report/report_model.h"

namespace bench {

// Of the sections those that have something to show.
Document DocumentOf(const ReportModel& model, const std::string& title,
                    std::vector<std::string> problems);

}  // namespace bench
