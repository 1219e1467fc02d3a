// SPDX-License-Identifier: Apache-2.0
//
// The rules by which DLPerf makes speeds of logs, and of speeds the table (Oneflow-Inc/DLPerf,
// NVIDIADeepLearningExamples/TensorFlow/Classification/ConvNets/resnet50v1.5/
// extract_tensorflow_logs.py and extract_tensorflow_logs_time.py at c89430b).  Speeds are images
// per second of all ranks together.  Pure.
//
// A log has a line " imgs_per_sec : X " for each step but the first 20, which the trainer leaves
// out.  So with 20 warm-up steps of 120 it is lines 1 to 100 that count.
//   kRate  the mean of X, each rounded to two digits, over the lines that count
//   kTime  global batch x (lines - 1) / (time of the last line - time of the first), of the lines
//          that count; the global batch is all images of a step, also of one that has several
//          batches (--accumulate), as the line of the run's options says
// Both are rounded to two digits.  Of the runs of a case average_speed is the mean and
// median_speed the median; speedup is median_speed over that of the case 1n1g.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

// How DLPerf names what is measured: a case is a directory <nodes>n<GPUs per node>g, a run of it a
// file <model>_b<batch per GPU>_<precision>_<repeat>.log in that directory.  Pure.

struct Case {
  int nodes = 0;
  int gpus = 0;  // on each node

  int ranks() const { return nodes * gpus; }
  bool operator==(const Case&) const = default;
};

// By ranks, then by nodes.
bool operator<(const Case& a, const Case& b);

std::string NameOf(const Case& name);

// "2n8g"; nothing for another text.  Numbers are 1 to 9999.
std::optional<Case> ParseCase(std::string_view text);

// DLPerf's extractors read one digit of nodes and two of GPUs.
bool FitsDlperf(const Case& name);

struct RunName {
  std::string model;       // "r50"
  std::int64_t batch = 0;  // per GPU
  std::string precision;
  int repeat = 0;  // from 1
};

std::string FileNameOf(const RunName& name);

// "r50_b128_fp32_1.log"; nothing for another text.
std::optional<RunName> ParseRunName(std::string_view text);

enum class SpeedRule : std::uint8_t { kRate, kTime };

// Steps at the start that no log has.
inline constexpr int kUnloggedSteps = 20;

struct SpeedWindow {
  SpeedRule rule = SpeedRule::kRate;
  int warmup_steps = 20;  // kUnloggedSteps or more
  int steps = 120;        // more than warmup_steps; with kTime at least two more
};

// Takes the lines of one log.
class SpeedMeter {
 public:
  // `batch` is of all ranks together.
  SpeedMeter(const SpeedWindow& window, std::int64_t batch);

  // Lines of other kinds are passed over.  Throws trainer::Error(EX_DATAERR) for a line that has
  // the key and no number, or, with kTime, no time or no number of batches; what() says which.
  void Add(std::string_view line);

  // Lines that count or came before those that do, and how many of them there have to be.
  int lines() const { return lines_; }
  int needed() const { return window_.steps - kUnloggedSteps; }
  bool is_full() const { return lines_ >= needed(); }

  // REQUIRES: is_full().  Nothing when no time has passed between the lines (kTime).
  std::optional<double> Speed() const;

 private:
  void AddOptions(std::string_view line);
  int first() const { return window_.warmup_steps - kUnloggedSteps; }

  const SpeedWindow window_;
  const std::int64_t batch_;
  std::int64_t batches_ = 1;           // of a step; kTime
  std::optional<std::int64_t> fixed_;  // images of a step, where the options say so; kTime
  int lines_ = 0;
  std::vector<double> speeds_;   // kRate
  std::int64_t start_time_ = 0;  // microseconds; kTime
  std::int64_t end_time_ = 0;
};

// All repeats of a case.
struct CaseRuns {
  std::int64_t batch = 0;        // per GPU
  std::map<int, double> speeds;  // by repeat
};
using ModelRuns = std::map<Case, CaseRuns>;

// A row of the table.
struct CaseSpeed {
  Case name;
  std::int64_t batch = 0;
  int runs = 0;
  double average = 0;
  double median = 0;
  std::optional<double> speedup;  // nothing without a case 1n1g
};

// REQUIRES: every case has a run.
std::vector<CaseSpeed> SpeedsOf(const ModelRuns& runs);

using ModelSpeeds = std::map<std::string, std::vector<CaseSpeed>>;

// What DLPerf's scripts write: one object in one line, floats as Python prints them.
std::string FormatJson(const ModelSpeeds& models);

// DLPerf's columns node_num, gpu_num, samples/s (the median) and speedup, in Markdown; behind them
// average, runs, and the batch per GPU.
std::string FormatTable(const std::vector<CaseSpeed>& rows);

// As NumPy adds and rounds, so that the last digit is DLPerf's.
double NumpySum(std::span<const double> values);
double NumpyRound(double value);  // to two digits

}  // namespace bench
