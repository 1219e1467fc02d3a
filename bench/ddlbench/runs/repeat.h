// SPDX-License-Identifier: Apache-2.0
//
// ddlbench repeat: trainings, timed and reported as a benchmark of Mila's suite: one on one GPU or
// several, or one on each GPU at once, or the input alone.

#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "bench/ddlbench/log_analysis/mila_report.h"
#include "bench/ddlbench/runs/command_runner.h"
#include "bench/run_log/log_entry.h"
#include "bench/run_log/log_lines.h"

namespace bench {

// How far a run of ddlbench repeat has come, read from its log while it is written.
class RepeatProgress {
 public:
  // `out` must outlive it.  `prefix`: in front of each line.
  RepeatProgress(std::filesystem::path log, std::int64_t global_batch, int repeat, int number,
                 std::ostream& out, std::string prefix = "");

  // Prints Mila's line for each observation that has ended since the last call.  The time that is
  // left is that of the mean of the observations that count, or of the last one while none does.
  // Does not throw: from a log that cannot be read on it prints no more.
  void Show() noexcept;

 private:
  void ShowObservation();

  const std::filesystem::path path_;
  const std::int64_t global_batch_;
  const int repeat_;
  const int number_;
  std::ostream& out_;
  const std::string prefix_;
  std::optional<LogLines> lines_;
  RunSteps steps_;
  int shown_ = 0;
  double counted_seconds_ = 0;
  bool has_failed_ = false;
};

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

// The defaults are those of Mila's benchmark convnet, or of that which `name` is.
struct RepeatOptions {
  std::string directory;
  std::string suite = "fast";
  std::string name = "convnet";
  std::string arch = "resnet101";
  std::int64_t batch_size = 0;  // of all ranks in a step; 0: that of the benchmark
  int repeat = 15;
  int number = 5;
  int devices = 0;  // ranks; 0: one, or one for each visible GPU of a distributed benchmark
  int copies = 1;   // trainings of one rank each, at once
  bool half = false;
  double learning_rate = 0.1;
  std::string data_dir;  // "": synthetic
  int run_id = 0;
  std::vector<std::string> ddlrun;   // options for it
  std::vector<std::string> trainer;  // further options of ddltraind
};

// What the environment says of the machine and of who started the benchmark.
struct MilaSurroundings {
  std::string version;
  std::string hostname;
  std::string visible_devices;  // CUDA_VISIBLE_DEVICES
  std::vector<int> cpus;        // that this program may run on
  int jr_id = 0;
};

// With what the benchmark says instead of what is not given.  `visible`: CUDA_VISIBLE_DEVICES.
// Throws trainer::Error(EX_USAGE) where it is not known how many GPUs there are.
RepeatOptions WithMilaDefaults(RepeatOptions options, const std::string& visible);

// Of options with their defaults.  Throws trainer::Error(EX_USAGE) naming the option that is wrong.
void CheckRepeatOptions(const RepeatOptions& options);

// ddlrun and ddltraind; of several copies ddltraind alone.
std::vector<std::string> RepeatCommand(const RepeatOptions& options, const Programs& programs,
                                       const std::filesystem::path& results_dir);

// The numbers of visible GPUs if that is all there is, else those of the first `devices`:
// mlbench-report reads numbers only.
std::string VisibleDevices(const std::string& visible, int devices);

// What copy number `copy` sees: the GPU of that place in CUDA_VISIBLE_DEVICES, or of that number.
// Throws trainer::Error(EX_USAGE) when `visible` names fewer GPUs than there are copies.
std::string DeviceOfCopy(const std::string& visible, int copy, int copies);

// Its even share of `cpus`, side by side; all of them where there are fewer than copies.
std::vector<int> CpusOfCopy(const std::vector<int>& cpus, int copy, int copies);

// What is reported, but for the times: of copy number `copy`.
MilaRun DescribeMilaRun(const RepeatOptions& options, const MilaSurroundings& surroundings,
                        int copy);

// Runs it, prints how far it has come, observations, statistics and the report to `out`, and writes
// <folder>/<stem>.json, with the log beside it, for each copy; a copy that has failed has FAIL in
// its name.  Returns 0, the exit code of the first that has failed, 128 + n when signal n ended it,
// or EX_DATAERR when a log is not whole.  Throws trainer::Error.
int RunRepeat(const RepeatOptions& options, const MilaSurroundings& surroundings,
              const Programs& programs, std::ostream& out, std::ostream& messages);

}  // namespace bench
