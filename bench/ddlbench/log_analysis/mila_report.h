// SPDX-License-Identifier: Apache-2.0
//
// The report of a benchmark in the form of Mila's suite (mila-iqia/training at 0591444, milabench),
// as its mlbench-report reads it: a JSON object in a file of its own.  Pure.
//
// Mila times `repeat` observations of `number` steps each; the first 10 do not count.

#pragma once

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/base/diagnostics.h"
#include "bench/base/statistics.h"
#include "bench/run_log/log_entry.h"

namespace bench {

// The benchmarks of Mila's suite (mila-iqia/training, profiles/fast.json) that train a network on
// images or load them, with its settings.  Pure.

// What one GPU, or all, or none does.
enum class MilaKind : std::uint8_t {
  kOne,          // each GPU a training of its own
  kDistributed,  // one training on all GPUs
  kLoader,       // the input alone
};

struct MilaBenchmark {
  std::string_view name;
  MilaKind kind = MilaKind::kOne;
  std::int64_t batch_size = 64;  // of all ranks in a step
  bool half = false;
};

// That of a name, or convnet for a name that is none of Mila's.
MilaBenchmark MilaBenchmarkOf(std::string_view name);

// SHA-256 (FIPS 180-4), for the identities in Mila's reports; not for secrets.  Pure.

// 64 hexadecimal digits.
std::string Sha256(std::string_view text);

// Observations at the start that do not count.
inline constexpr int kSkippedObservations = 10;

// What was run.
struct MilaRun {
  std::string suite;  // "fast"
  std::string name;   // "convnet": the row of the table of targets
  std::string version;
  std::string arch;
  std::string data;             // directory of images, or "synthetic"
  std::int64_t batch_size = 0;  // of all ranks in a step
  int repeat = 0;
  int number = 0;
  int devices = 1;  // ranks
  bool half = false;
  double learning_rate = 0;
  int cpu_cores = 0;
  int run_id = 0;
  int jr_id = 0;
  std::string vcd;         // CUDA_VISIBLE_DEVICES
  std::string gpu;         // its model; "": computed on the CPU
  bool is_loader = false;  // the input alone: no network, learning rate and losses
  bool completed = true;
  std::string hostname;
  std::time_t start_time = 0;
  std::time_t end_time = 0;
};

// The seconds of `repeat` times `number` steps.  REQUIRES: there are so many steps.
std::vector<double> ObservationsOf(std::span<const RunStep> steps, std::int64_t global_batch,
                                   int repeat, int number);

// Seconds of an observation, and images/s.
struct MilaTimes {
  Statistics train;      // of the observations that count
  double items_avg = 0;  // batch_size * number / train.mean
  double items_min = 0;  // of the longest observation that counts
  double items_max = 0;
};

// REQUIRES: more than kSkippedObservations observations.
MilaTimes TimesOf(std::span<const double> observations, std::int64_t batch_size, int number);

// Mila's line after each observation, "[  0/ 15] | ETA:   0.52 min | Batch Loss   6.9078": which
// one it was, from 0; how long those that are left take at `seconds` each; the loss of its last
// step, where there is one.
std::string FormatEta(int observation, int repeat, double seconds, std::optional<double> loss);

// SHA-256 of what makes two runs comparable; reports of other runs are not averaged with it.
std::string UniqueIdOf(const MilaRun& run);

// The losses are those of the last 100 steps.  `times` are missing where a run has failed before
// there was an observation that counts.
std::string FormatMilaReport(const MilaRun& run, const std::optional<MilaTimes>& times,
                             std::span<const RunStep> steps);

// fast.convnet.R0.D0.20261123-025723-000123: suite, name, run, devices, time (UTC); of a run that
// has failed fast.convnet.R0.D0.FAIL.20261123-025723-000123.
std::string MilaFileStem(const MilaRun& run, std::int64_t microseconds);

// Of a report that was read: what a comparison needs.
struct MilaResult {
  std::string name;
  double items_per_second = 0;  // train_item.avg
};

// Throws trainer::Error(EX_DATAERR) when `text` is no such report, or that of a run that has
// failed.
MilaResult ParseMilaReport(const std::string& text);

// ddlbench compare: reports in Mila's form beside a table of targets.

struct CompareOptions {
  std::string targets;               // CSV file
  std::vector<std::string> reports;  // files, and directories with *.json
};

// A row of Mila's tables, such as target_v100.csv: bench,target,perf_target,sd_target.
struct Target {
  double items_per_second = 0;
  std::optional<double> min_share;   // perf_target: of the target, to pass
  std::optional<double> largest_sd;  // sd_target: over the result, to pass
};
using Targets = std::map<std::string, Target>;

// Throws trainer::Error(EX_NOINPUT) when the file cannot be read, EX_DATAERR naming file and line
// when it has no such header.  Rows that are wrong are problems, and left out.
Targets ReadTargets(const std::filesystem::path& path, Diagnostics& diagnostics);

// items/s of every report, by benchmark.  Files that are no reports are problems; of directories
// those files are read, however deep they lie, whose names are of the form fast.convnet.R0.*.json.
std::map<std::string, std::vector<double>> ReadReports(const std::vector<std::string>& paths,
                                                       Diagnostics& diagnostics);

// bench, target, result (the mean), sd (of a sample), sd%, diff (result over target less 1), runs
// and, where the targets say what it takes, pass.  What is not known is "-".
std::string FormatComparison(const std::map<std::string, std::vector<double>>& results,
                             const Targets& targets);

// The table as text.  Benchmarks without a target are noted.
std::string Compare(const CompareOptions& options, Diagnostics& diagnostics);

}  // namespace bench
