// SPDX-License-Identifier: Apache-2.0
//
// What a report says of its runs: the figures of each, groups of runs that were made alike, how
// speed grows with the ranks, and how runs and groups differ.  doc/reference/metrics.md has the
// definitions.  Pure.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/report/readers/run.h"
#include "scaling/machine.h"

namespace bench {

inline constexpr double kPercent = 100;

// A mean and half of its confidence interval, where that is known.
struct Estimate {
  double value = 0;
  std::optional<double> margin;
};

// Seconds.
struct StepSeconds {
  double mean = 0;
  double sd = 0;
  double min = 0;
  double median = 0;
  double p95 = 0;
  double p99 = 0;
  double max = 0;
};

struct RunStats {
  std::string name;  // short, and no other run's
  std::size_t group = 0;
  std::int64_t steps = 0;
  std::optional<std::int64_t> global_batch;
  std::optional<Estimate> images_per_second;
  std::vector<double> batch_speeds;  // images/s of each batch of steps
  std::optional<StepSeconds> step;
  std::optional<double> watts;             // of all GPUs together
  std::optional<double> joules_per_image;  // watts / images/s
  std::string why_no_energy;               // "" where power was not sampled at all
};

// Runs with the same ranks, nodes, program, back end and options that speed may depend on.
struct RunGroup {
  std::string name;
  std::int64_t ranks = 0;
  std::vector<std::size_t> runs;
  std::optional<Estimate> images_per_second;  // mean of the runs; the margin is over them
};

struct ScalingPoint {
  std::size_t group = 0;
  std::int64_t ranks = 0;
  Estimate images_per_second;
  double ideal = 0;                 // of the fewest ranks, times ranks over those
  double efficiency = 0;            // over ideal
  std::optional<double> predicted;  // images/s, by the links of a site
};

// Groups that differ in ranks and nodes alone, by ranks; two at least.
struct Scaling {
  std::string name;  // what these have in common that others have not
  std::vector<ScalingPoint> points;
};

// images/s of b less those of a.
struct Difference {
  std::size_t a = 0;
  std::size_t b = 0;
  Estimate images_per_second;
  Estimate percent;  // of a
};

// An option or a fact that is not the same in all runs.
struct DifferingSetting {
  std::string name;
  std::vector<std::string> values;  // of each run; "" where it did not say
};

struct ReportModel {
  std::vector<RunRecord> runs;
  std::vector<RunStats> figures;  // of each run
  std::vector<RunGroup> groups;
  std::vector<Scaling> scalings;
  std::vector<Difference> run_differences;    // from the baseline, of runs
  std::vector<Difference> group_differences;  // from that of the baseline, of groups
  std::vector<DifferingSetting> differing;
};

// `baseline` is the number of the run that others are compared with.  REQUIRES: it is one of them.
ReportModel MakeReportModel(std::vector<RunRecord> runs, std::size_t baseline);

// One for each run: the path without what all of them begin with and, where all are equally deep,
// without the parts that are the same in all; of a single run its last part.
std::vector<std::string> NamesOfRuns(const std::vector<RunRecord>& runs);

// In the order of ranks, then of the first run of each.  Their speeds are still to come.
std::vector<RunGroup> GroupsOf(const std::vector<RunRecord>& runs);

// Fills ScalingPoint::predicted (scaling/predict.h) where a scaling of ResNet-50 has a speed of one
// rank.  What one GPU, a whole node and two reach is told, and so comes out again; other points are
// predicted.
void AddPredictions(ReportModel& model, const scaling::Machine& machine);

}  // namespace bench
