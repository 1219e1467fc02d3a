// SPDX-License-Identifier: Apache-2.0
//
// What a run writes for other programs: rank 0 NVLOG and DLLogger lines on standard output,
// DLLogger's JSON and other files, and progress on standard error; every rank its own Prometheus
// file.

#pragma once

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "launcher/protocol/rank_environment.h"
#include "trainer/options/options.h"
#include "trainer/telemetry/formats/event_file.h"
#include "trainer/telemetry/formats/job_comment.h"
#include "trainer/telemetry/formats/prometheus_file.h"
#include "trainer/telemetry/formats/training_log.h"
#include "trainer/telemetry/text/log_file.h"
#include "trainer/telemetry/text/python_format.h"
#include "trainer/telemetry/text/redrawn_line.h"
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

}  // namespace trainer
