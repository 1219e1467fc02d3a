// SPDX-License-Identifier: Apache-2.0
//
// ddlbench repeat: one training, timed and reported as a benchmark of Mila's suite.

#pragma once

#include <cstdint>
#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "bench/ddlbench/mila_report.h"
#include "bench/ddlbench/programs.h"

namespace bench {

// The defaults are those of Mila's benchmark convnet.
struct RepeatOptions {
  std::string folder;
  std::string suite = "fast";
  std::string name = "convnet";
  std::string arch = "resnet101";
  std::int64_t batch_size = 64;  // of all ranks in a step
  int repeat = 15;
  int number = 5;
  int devices = 1;
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
  int cpu_cores = 0;
  int jr_id = 0;
};

// Throws trainer::Error(EX_USAGE) naming the option that is wrong.
void CheckRepeatOptions(const RepeatOptions& options);

// ddlrun and ddltraind.
std::vector<std::string> RepeatCommand(const RepeatOptions& options, const Programs& programs,
                                       const std::filesystem::path& results_dir);

// The numbers of visible GPUs if that is all there is, else those of the first `devices`:
// mlbench-report reads numbers only.
std::string VisibleDevices(const std::string& visible, int devices);

// Runs it, prints how far it has come, observations, statistics and the report to `out`, and writes
// <folder>/<stem>.json, with the log beside it.  Returns 0, the exit code of the run that failed,
// 128 + n when signal n ended it, or EX_DATAERR when its log is not whole.
// Throws trainer::Error.
int RunRepeat(const RepeatOptions& options, const MilaSurroundings& surroundings,
              const Programs& programs, std::ostream& out, std::ostream& messages);

}  // namespace bench
