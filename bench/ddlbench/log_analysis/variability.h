// SPDX-License-Identifier: Apache-2.0
//
// ddlbench variability: how far GPUs that should be equal are apart, by the rules of the SC22 study
// "Not All GPUs Are Created Equal" (its plot_script/).  doc/reference/metrics.md has the
// definitions.

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "bench/base/diagnostics.h"
#include "bench/ddlbench/log_analysis/ascii_table.h"
#include "bench/ddlbench/log_analysis/duration_logs.h"

namespace bench {

struct VariabilityOptions {
  std::vector<std::string> logs;  // files and directories
  std::string json;               // file; "": none
};

// One GPU over all its runs.
struct DeviceVariability {
  DevicePlace place;
  std::size_t runs = 0;
  double seconds = 0;      // median over its runs of the mean duration of an iteration
  double min_seconds = 0;  // of any iteration
  double max_seconds = 0;
  double normalized = 0;     // seconds over their median over the GPUs
  double repeat_spread = 0;  // of 1: largest less smallest mean of a run, over seconds
  // Medians over its runs.
  std::optional<double> mhz;
  std::optional<double> celsius;
  std::optional<double> watts;
  int outlier = 0;  // -1: faster than the lower whisker, 1: slower than the upper one
};

struct Variability {
  std::vector<DeviceVariability> devices;  // the slowest first
  AsciiTable box;                          // of their seconds
  double range = 0;                        // of 1: slowest less fastest, over the median
  double median_repeat_spread = 0;         // over GPUs with more than one run
  double max_repeat_spread = 0;
};

// REQUIRES: there is a run, and each has a duration.
Variability AnalyzeVariability(const DeviceRuns& runs);

std::string FormatVariability(const Variability& variability);
std::string VariabilityJson(const Variability& variability);

// The text; writes the JSON file, or complains that it cannot.  Throws trainer::Error where there
// is no run: with the code of what was complained of first, else EX_DATAERR.
std::string RunVariability(const VariabilityOptions& options, Diagnostics& diagnostics);

}  // namespace bench
