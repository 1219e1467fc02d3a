// SPDX-License-Identifier: Apache-2.0
//
// The command line of ddlctl: one description that makes the parser, --help, the manual page and
// the completion.  Pure.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "support/command_line.h"
#include "trainer/control/control_message.h"

namespace ddlctl {

enum class Command {
  kNone,
  kStatus,
  kWatch,
  kOrder,
  kStacks,
  kWhy,
  kHistory,
  kAttach,
  kListCheckpoints,
  kVerifyCheckpoints,
  kExportCheckpoint,
};

struct Options {
  Command command = Command::kNone;
  trainer::ControlRequest request;  // what to ask for
  std::string setting;              // of set, as it was written
  std::string results_dir;
  std::string job;            // "": the one that the training says it is in
  std::string srun = "auto";  // or "never"
  bool as_json = false;
  bool no_wait = false;
  bool all_threads = false;
  bool is_verbose = false;
  bool facts_only = false;
  int rank = 0;                      // to attach to
  std::vector<std::string> program;  // beside it
  std::string model_dir;             // whose checkpoints are to be listed, verified, exported
  std::optional<std::int64_t> step;  // of one of them
  std::string step_text;             // as it was written
  std::string export_file;
  double interval = 0;  // seconds between looks of watch; 0: as its output is
};

// Takes what `attach` is to run, the words behind JOB and RANK, off the arguments of ddlctl; none
// where there are none.
std::vector<std::string> TakeProgram(std::vector<std::string>* arguments);

// Its commands and options; parsing fills `options`, which must outlive it.
support::Program DescribeOptions(Options& options);

}  // namespace ddlctl
