// SPDX-License-Identifier: Apache-2.0
//
// What a run writes for other programs: rank 0 NVLOG and DLLogger lines on standard output,
// DLLogger's JSON and other files, and progress on standard error; every rank its own Prometheus
// file.

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
#include "trainer/telemetry/formats/event_file.h"
#include "trainer/telemetry/formats/progress.h"
#include "trainer/telemetry/formats/prometheus_file.h"
#include "trainer/telemetry/formats/training_log.h"
#include "trainer/telemetry/text/log.h"
#include "trainer/telemetry/text/python_format.h"
#include "trainer/train/config.h"
#include "trainer/train/logging/log_dispatcher.h"

namespace trainer {

// What a run was told, by option, for machines to read; options without a value are left out.
LogFields LoggedParameters(const Options& options);

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
  // A later launch of a run adds to what the earlier ones have written.  Makes --tensorboard_dir.
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
  void CommentJob(const std::string& job_id);

  Logger log_;
  LogFile json_;
  std::optional<LogFile> mllog_file_;
  LineOutput text_buffer_;
  std::ostream text_{&text_buffer_};
  std::optional<BackgroundCommand> comment_order_;
  std::vector<std::unique_ptr<TrainingLog>> logs_;
  const EventFile* events_ = nullptr;  // of logs_; null: there is none
  std::optional<GpuMeter> gpu_;
};

class RankOutputs {
 public:
  // Makes the directories.  Throws Error(EX_OSERR) that names the file or directory which cannot be
  // written, and its option; what is lost later is told to `log`.
  RankOutputs(const Options& options, const launcher::RankInfo& rank, const std::string& version,
              const Logger& log);
  // Says in the files that the run is over.
  ~RankOutputs();
  RankOutputs(const RankOutputs&) = delete;
  RankOutputs& operator=(const RankOutputs&) = delete;

  // `outputs` with pointers into this object.
  Outputs AddedTo(Outputs outputs);

 private:
  std::optional<PrometheusFile> prometheus_;
};

// The directories that a run writes to, before its first step: what cannot be written is known
// then, not after days of training.

// With what is missing above it.  Throws Error(EX_OSERR) that says to give another `option`.
void MakeDirectory(const std::filesystem::path& directory, const std::string& option);

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
