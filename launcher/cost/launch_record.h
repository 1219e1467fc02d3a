// SPDX-License-Identifier: Apache-2.0
//
// What one ddlrun has cost, as the file run-TIME-PID.json, which is replaced as a whole and which
// `ddlctl history` reads; and as metrics for Prometheus.  doc/reference/metrics.md has both.  Pure.

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "launcher/cost/run_cost.h"

namespace launcher {

// Raised as doc/formats.md says.
inline constexpr int kRunFormat = 1;
inline constexpr char kRunFileBeginning[] = "run-";
inline constexpr char kRunFileEnding[] = ".json";
inline constexpr std::size_t kMaxRunFileBytes = 65536;

// One ddlrun.
struct LaunchRecord {
  std::string job;      // Slurm's number, "" outside Slurm
  std::string cluster;  // Slurm's name, "" outside Slurm
  std::string host;     // of ddlrun
  int pid = 0;          // of ddlrun
  int requeues = 0;     // SLURM_RESTART_COUNT
  double start = 0;     // seconds since 1970
  // nullopt while it runs; it stays so where it was killed.  cost.wall says how long it ran until
  // this was written.
  std::optional<int> exit_code;
  RunCost cost;
};

// "20261129T204053Z-4711": tells the launches of a directory apart, and sorts them by time.
std::string NameOfLaunch(const LaunchRecord& record);
// "run-20261129T204053Z-4711.json".
std::string RunFileName(const LaunchRecord& record);

// The parts as JSON, one line without its end: null for what is not known.
std::string CostJson(const RunCost& cost);
// The contents of that file, one line.
std::string FormatLaunch(const LaunchRecord& record);
// `problem` gets why, where the result is nullopt: another format, or no such file.
std::optional<LaunchRecord> ParseLaunch(const std::string& text, std::string* problem);

// "ddlrun-20261129T204053Z-4711.prom".
std::string MetricsFileName(const LaunchRecord& record);
// For the textfile collector of Prometheus' node exporter, in the two formats that
// trainer/telemetry/formats/prometheus_file.h writes; all are gauges.
std::string FormatMetrics(const LaunchRecord& record);

// The launches of one job, or of several.
struct LaunchHistory {
  struct Launch {
    LaunchRecord record;
    bool was_killed = false;
  };
  std::vector<Launch> launches;
  RunCost sum;
};

// ddlrun writes at least every 30 s.
inline constexpr double kSilentSeconds = 120;
// Whether it was killed: it has no exit code, and was not written for kSilentSeconds when it was
// `now` (seconds since 1970), or is followed by a launch of its job after a requeue.  `next`: the
// launch after it, null for the last one.
bool WasKilled(const LaunchRecord& record, const LaunchRecord* next, double now);

// In order of their starts.  What a launch had not saved when it was killed is lost.  The time in
// the queue is that between two launches of one job whose number of requeues differs; it is
// `requeued` of the later one, and part of its wall time.
LaunchHistory HistoryOf(std::vector<LaunchRecord> launches, double now);

}  // namespace launcher
