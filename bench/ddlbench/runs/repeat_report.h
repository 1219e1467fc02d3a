// SPDX-License-Identifier: Apache-2.0
//
// What ddlbench repeat leaves of a run: tables, and the file that mlbench-report reads.

#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/ddlbench/log_analysis/mila_report.h"
#include "bench/run_log/run_steps.h"

namespace bench {

std::int64_t MicrosecondsNow();

// A run that has ended, as it should or not (run.completed).
struct RepeatOutcome {
  MilaRun run;
  std::int64_t start = 0;            // microseconds since 1970
  std::vector<double> observations;  // seconds of each, as many as there were
  std::vector<RunStep> steps;        // none of the input alone

  // Of the observations that count; nothing where there is none.
  std::optional<MilaTimes> times() const;
};

// Each observation, then their statistics.
std::string FormatObservations(const RepeatOutcome& outcome);

// Of several copies at once: each, and their sum.  Those without times are left out.
std::string FormatMemcpy(std::span<const RepeatOutcome> copies);

// Writes <folder>/<stem>.json, whose name it returns.  Throws trainer::Error(EX_OSERR).
std::filesystem::path WriteMilaReport(const RepeatOutcome& outcome,
                                      const std::filesystem::path& directory);

// Mila's end of a run: the report between two lines, and where it is.
std::string FormatSaved(const RepeatOutcome& outcome, const std::filesystem::path& report);

}  // namespace bench
