// SPDX-License-Identifier: Apache-2.0
//
// What rank 0 writes for other programs: NVLOG and DLLogger lines on standard output, DLLogger's
// JSON and other files, and progress on standard error.

#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/protocol/rank_environment.h"
#include "trainer/checkpoint/run_lock.h"
#include "trainer/options/options.h"
#include "trainer/telemetry/formats/progress.h"
#include "trainer/telemetry/formats/training_log.h"
#include "trainer/telemetry/text/log.h"
#include "trainer/telemetry/text/python_format.h"
#include "trainer/train/config.h"
#include "trainer/train/logging/log_dispatcher.h"

namespace trainer {

// What a run was told, by option, for machines to read; options without a value are left out.
LogFields LoggedParameters(const Options& options);

// The name of its node, also where no launcher has said it.
std::string HostOf(const launcher::RankInfo& rank);

// What log.json has of a launch besides its options, for those who compare runs later: a line
// METADATA of the metric "run".  Pure.
struct RunMetadata {
  std::string version;                 // of the program
  std::vector<std::string> arguments;  // of its command line
  std::string backend;                 // as it describes itself
  std::string communication;           // the same
  std::string job;                     // "" outside Slurm
};

// program, command, ranks, nodes, host, backend, communication and, inside Slurm, job.  `host` is
// that of rank 0.
LogFields DescribeLaunch(const RunMetadata& items, const launcher::RankInfo& rank,
                         const std::string& host);

// What is told of the launch, and how.
struct RootOutputsDeps {
  const Options& options;
  const launcher::RankInfo& rank;
  RunMetadata launch;
  std::string device_id;  // the GPU's, or ""
  ProgressOptions progress;
};

class RootOutputs {
 public:
  // A later launch of a run adds to what the earlier ones have written.
  // `line`, on standard error, is for progress.  Lines that are lost, on a full disk, are told to
  // `log`: a training does not end for them, nor for a comment that its job does not get.
  // Throws Error(EX_OSERR) naming a file that cannot be written, and its option.
  RootOutputs(const RootOutputsDeps& deps, RedrawnLine& line, const Logger& log);
  RootOutputs(const RootOutputs&) = delete;
  RootOutputs& operator=(const RootOutputs&) = delete;

  // Points into this object.
  Outputs outputs();

  // Tells the log how many lines were lost, if any were.  Returns whether all lines of standard
  // output were written.
  bool End();

 private:
  Logger log_;
  LogFile json_;
  LineOutput text_buffer_;
  std::ostream text_{&text_buffer_};
  std::vector<std::unique_ptr<TrainingLog>> logs_;
  std::optional<GpuMeter> gpu_;
};

// The directories that a run writes to, before its first step: what cannot be written is known
// then, not after days of training.

// Whether `file`, as it will be once it is renamed into its place, can be written is known for
// certain only by writing beside it.  Throws Error(EX_OSERR) that names it and says to give
// `instead`.
void TryToWrite(const std::filesystem::path& file, std::string_view instead);

// For rank 0 alone, of any mode.  Makes results_dir, and tries whether the files of --trace and
// --profile can be written; for a training that keeps its weights also makes and locks model_dir,
// tries whether --export_dir and --dump_state can be written, and removes what killed runs have
// left half written in them.  The lock, or null; to be kept until the run ends. Throws Error that
// names the directory and the option: EX_OSERR, or as LockRun.
std::unique_ptr<RunLock> PrepareDirectories(const TrainConfig& config,
                                            const RunLockOptions& lock_options, const Logger& log);

}  // namespace trainer
