// SPDX-License-Identifier: Apache-2.0
//
// The command line of ddltraind: one struct with the defaults, which is the configuration of the
// training as well, so that parsing is all it takes to make one; and one table (option_table.cc)
// that gives the parser, --help, the manual page and the completion.  The options of NVIDIA's
// main.py (DeepLearningExamples, TensorFlow/Classification/ConvNets, utils/ cmdline_helper.py at
// fed7ba99 and the later additions, with its shorter names of 2020) are all accepted, unambiguous
// abbreviations included, as argparse does.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "trainer/core/consistency_item.h"
#include "trainer/data/tfrecord_loader.h"
#include "trainer/train/config.h"

namespace support {
struct Option;
struct Program;
}  // namespace support

namespace trainer {

// What the training loop is told (train/config.h), by the names of the options, and what is for the
// program around it.
struct Options : TrainConfig {
  // Data.
  std::string data_dir;      // "": synthetic
  std::string data_idx_dir;  // "": record boundaries are found by scanning
  std::string scan_cache = "auto";
  std::string record_cache;       // directory of the node; "": none
  double record_cache_gb = 0;     // 0: half of what is free there
  int synthetic_data_size = 224;  // pixels; parsing makes it image_size where it counts
  Augment augment = Augment::kTrain;
  Augmentation augmentation = Augmentation::kTensorFlow;
  bool use_dali = false;  // parsing makes it augmentation
  bool shuffle = true;
  BadRecords bad_records = BadRecords::kStop;
  int max_bad_records = 100;
  std::string labels;  // of classes, for people; "": none
  bool json = false;   // predictions

  // Optimisation.
  std::string recipe = "none";  // program/recipe.h
  bool use_cosine_lr = false;   // parsing makes it schedule.lr_schedule
  std::string precision = "fp32";
  bool deterministic = false;
  bool programmatic_launch = false;
  double static_loss_scale = -1;  // parsing makes it loss_scale and use_static_loss_scaling
  bool use_tf_amp = false;        // parsing makes it precision

  // Logs.
  std::string log_filename = "log.json";

  // Logs for other programs.  "": none.
  std::string mllog;
  std::string mllog_division = "open";
  std::string mllog_org = "unspecified";
  std::string mllog_platform = "unspecified";
  std::string mllog_status = "research";
  std::string prometheus_dir;
  std::string tensorboard_dir;
  bool job_comment = false;
  std::string roofline;  // GFLOPS:GBS; "": measured

  // How.
  std::string backend = "auto";
  std::string comm = "auto";
  std::string plan_cache = "auto";
  int nccl_max_ctas = 0;           // 0: NCCL's choice
  int threads = 0;                 // of the back end; 0: one per core this rank may use
  int data_threads = 0;            // decoding; 0: one per core this rank may use
  int prefetch = 2;                // batches
  double hang_floor_seconds = 60;  // 0: hung ranks are not looked for
  std::string stop_margin = "auto";
  std::string dry_run;  // "": no; "short", "full"

  // Accepted, without effect here.
  bool use_xla = false;
  std::string data_format = "NHWC";
  double gpu_memory_fraction = 0.7;
  int gpu_id = 0;
  bool cpu = false;
  bool use_final_conv = false;
  bool quantize = false;
  std::int64_t quant_delay = 0;
  bool use_qdq = false;
  bool symmetric = false;
};

// Whether the ranks of one run may be given an option differently.
enum class RankRule : std::uint8_t {
  kSame,       // no
  kMustMatch,  // a path: each rank may have its own, but all or none of them are given one
  kOwn,        // yes: what other ranks see does not depend on it
  kOtherName,  // it sets the value of another row, and is looked at there
};

struct OptionRow;

// How an option gets into Options, and its value out of them.
struct OptionAccess {
  support::Option (*describe)(const OptionRow& row, Options& options);
  std::string (*value)(const Options& options);  // "" where there is none, or it is off
  bool is_on_or_off;                             // it has no value but that
  bool is_switch = false;                        // and a twin "no<name>", as in main.py
};

// One row of the table: how an option is spelled, explained and read.
struct OptionRow {
  std::string name;    // "batch_size"
  std::string help;    // what it does, with unit
  bool nvidia;         // one of main.py's: these win when an abbreviation could mean several
  RankRule rank_rule;  // never left out: who adds an option says whether ranks are held to it
  OptionAccess access;
  std::string group = {};  // heading in --help
};
// Those of log formats among them.
const std::vector<OptionRow>& OptionTable();

// What cannot be meant together, and what to do about it.
struct Contradiction {
  bool is_there = false;
  std::string text;
};
// Of the first that counts, in an order from what the run is to details of it.
using Contradictions = std::vector<Contradiction>;

class TrainingLog;
struct LoggedLaunch;

// A log that an option asks for: the rows of its options, what they contradict and how it is opened
// are in the format's own file in telemetry/formats.
struct LogFormat {
  std::vector<OptionRow> options;
  // Null where the options do not ask for it.  A later launch of a run adds to what the earlier
  // ones have written; what is lost later is told to the log for people.  Throws Error(EX_OSERR)
  // that names the file or directory which cannot be written, and its option.
  std::unique_ptr<TrainingLog> (*open)(const LoggedLaunch& launch);
  bool is_of_each_rank = false;  // not of rank 0 alone
  // Besides a prediction, of which no log shows anything; may be null.  `given`: ParsedOptions.
  Contradictions (*contradictions)(const std::set<std::string>& given,
                                   const Options& options) = nullptr;
};
// In the order of --help; telemetry/formats/log_formats.cc lists them.
std::span<const LogFormat* const> LogFormats();

// What is to be the same on all ranks, in the order of the table: the value that counts, however it
// was spelled.
std::vector<ConsistencyItem> SharedOptions(const Options& options);

// All options; parsing fills `options`, which must outlive it.
support::Program DescribeOptions(Options& options);

// The number of --stop_margin=SECONDS; nothing for any other text.
std::optional<double> StopMarginSeconds(const std::string& text);

// What came of a command line.
struct ParsedOptions {
  Options options;
  std::set<std::string> given;     // whole names of rows, with their dashes
  std::vector<std::string> notes;  // one line for each option given that has no effect here, saying
                                   // what happens in its place
  std::string answer;              // text of --help or --version: print it and exit 0; "" otherwise
};

// `arguments` without the program's name.  Throws Error(EX_USAGE): an unknown option (with the
// nearest spelling), an ambiguous abbreviation (with what it could be), a value out of range,
// --batch_size missing.
ParsedOptions ParseOptions(const std::vector<std::string>& arguments);

}  // namespace trainer
