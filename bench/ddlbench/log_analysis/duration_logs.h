// SPDX-License-Identifier: Apache-2.0
//
// Logs of the SC22 study "Not All GPUs Are Created Equal": durations of iterations
// (resnet_iterdur_SECONDS_HOST.txt) and nvprof's tables (resnet_PID_SECONDS_HOST.csv), of ddltraind
// --variability_dir or of the study's own scripts.  Read line by line, however long they are.

#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "bench/base/diagnostics.h"

namespace bench {

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

}  // namespace bench
