// SPDX-License-Identifier: Apache-2.0
//
// The sections of a report, one function each; a section that has nothing to show has neither
// tables nor figures.  Pure.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/report/charts/document.h"
#include "bench/report/report_model.h"

namespace bench {

Section SpeedSection(const ReportModel& model);        // images/s and steps of each run
Section CurveSection(const ReportModel& model);        // images/s and loss by step
Section BreakdownSection(const ReportModel& model);    // phases of a step, by rank
Section ScalingSection(const ReportModel& model);      // images/s and efficiency by ranks
Section DifferenceSection(const ReportModel& model);   // runs and groups beside the baseline
Section GpuSection(const ReportModel& model);          // clocks, power, temperature
Section EnergySection(const ReportModel& model);       // power, energy per image
Section AccuracySection(const ReportModel& model);     // of evaluations
Section EnvironmentSection(const ReportModel& model);  // versions, commands, options

// Those that have something to show.
Document DocumentOf(const ReportModel& model, const std::string& title,
                    std::vector<std::string> problems);

// Cells: "-" for what is not known.
std::string CellOf(const std::optional<double>& value);
std::string MarginCell(const std::optional<Estimate>& estimate);

}  // namespace bench
