// SPDX-License-Identifier: Apache-2.0
//
// ddlbench variability: how far GPUs that should be equal are apart, by the rules of the SC22 study
// "Not All GPUs Are Created Equal" (its plot_script/).  doc/reference/metrics.md has the
// definitions.

#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "bench/base/diagnostics.h"
#include "bench/base/statistics.h"

namespace bench {

// Logs of the SC22 study "Not All GPUs Are Created Equal": durations of iterations
// (resnet_iterdur_SECONDS_HOST.txt) and nvprof's tables (resnet_PID_SECONDS_HOST.csv), of ddltraind
// --variability_dir or of the study's own scripts.  Read line by line, however long they are.

// A GPU, or what is in its place: where it is, and its number there.
struct DevicePlace {
  std::string host;
  int device = 0;

  bool operator==(const DevicePlace&) const = default;
  bool operator<(const DevicePlace& other) const {
    return std::tie(host, device) < std::tie(other.host, other.device);
  }
};

// One run on one device; times in seconds.
struct DeviceRun {
  std::vector<double> durations;  // of its iterations, without the first
  // Medians over the readings between its first and its last kernel.
  std::optional<double> mhz;
  std::optional<double> celsius;
  std::optional<double> watts;
};

// By the run's time, as the file's name has it.
using RunsOfDevice = std::map<std::string, DeviceRun>;
using DeviceRuns = std::map<DevicePlace, RunsOfDevice>;

// What such a name says; nothing for other names.
struct LogName {
  std::string run;
  std::string host;

  bool operator==(const LogName&) const = default;
};
// "resnet_iterdur_1649888832_c1-7.txt", "resnet_multi_iterdur_1649888832_c1-7_nnodes1_run_0.txt".
// A host may have '_' in its name; it ends where a part such as nnodes1 begins.
std::optional<LogName> ParseDurationsName(const std::string& name);
// "resnet_1234_1649888832_c1-7.csv".
std::optional<LogName> ParseTableName(const std::string& name);

// `paths` are files, and directories in which they are looked for by name.  What cannot be used is
// a problem; the rest counts.
DeviceRuns ReadDurationLogs(const std::vector<std::string>& paths, Diagnostics& diagnostics);

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
  BoxPlot box;                             // of their seconds
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
