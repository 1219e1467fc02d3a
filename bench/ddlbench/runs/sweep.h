// SPDX-License-Identifier: Apache-2.0
//
// What ddlbench sweep measures, in which order, by which commands, and where the logs go.  Pure.
//
// DLPerf's extractors read one directory of logs at a time, in which only cases and repeats differ:
//   DIR/bz128_fp32_synthetic/2n8g/r50_b128_fp32_1.log
//   DIR/bz128_fp32_synthetic/2n8g/results/r50_b128_fp32_1/log.json
// A log that is there is whole: while it is written its name ends in ".part".

#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "bench/ddlbench/log_analysis/dlperf.h"
#include "bench/ddlbench/runs/command_runner.h"

namespace bench {

struct SweepOptions {
  std::string directory;
  std::vector<std::string> cases = {"1n1g", "1n4g", "1n8g", "2n8g", "4n8g"};
  std::vector<std::string> precisions = {"fp32"};
  std::vector<std::int64_t> batches = {128};  // one for all precisions, or one for each
  std::vector<std::string> data;              // none: synthetic, and real with a data_dir
  std::string data_dir;
  std::string arch = "resnet50";
  int repeats = 5;
  int steps = 120;
  bool submit = false;
  int at_once = 1;                  // tasks of the array
  std::vector<std::string> sbatch;  // options for it
  std::vector<std::string> ddlrun;  // options for it
  int only = 0;                     // number of the one measurement to make; 0: all
  bool dry_run = false;
  std::vector<std::string> trainer;  // further options of ddltraind
};

struct Measurement {
  Case at;
  RunName name;
  bool is_real = false;  // images of data_dir
  std::filesystem::path log;
  std::filesystem::path results_dir;
};

// All measurements.  Repeats are outermost: what changes slowly on the machine is in all cases
// alike, and a sweep that is stopped has some of each.
// Throws trainer::Error(EX_USAGE) naming the option that is wrong.
std::vector<Measurement> MatrixOf(const SweepOptions& options);

// ddlrun and ddltraind for one measurement.
std::vector<std::string> CommandOf(const Measurement& measurement, const SweepOptions& options,
                                   const Programs& programs);

// The job script of the array: task K makes measurement K.
std::string JobScript(const SweepOptions& options, const Programs& programs);

// sbatch for `count` tasks; each gets as many nodes and GPUs as the largest case needs, since all
// tasks of an array get the same.
std::vector<std::string> SubmitCommand(const SweepOptions& options, std::size_t count,
                                       const std::filesystem::path& script);

// ddlbench sweep: makes the measurements of a matrix, or submits them.

// Makes what is missing of the matrix, one run after the other: a log that is there is not made
// again, and a run that fails leaves <log>.failed and does not keep the others from being made.
// Then prints the tables to `out`; with options.only, when that was the last one.  With
// options.submit sbatch is given all of it as an array; with options.dry_run nothing is started or
// written, and `out` says what would be.  Progress goes to `messages`.
// Returns the exit code of the first run that failed, 128 + n when signal n stopped the sweep, the
// code of a problem with the logs, or 0.  Throws trainer::Error.
int RunSweep(SweepOptions options, const Programs& programs, std::ostream& out,
             std::ostream& messages);

}  // namespace bench
