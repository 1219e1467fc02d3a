// SPDX-License-Identifier: Apache-2.0
//
// What rank 0 writes besides the log for people: NVLOG and DLLogger lines on standard output,
// DLLogger's JSON and what other programs read in files, progress on standard error.  The other
// ranks have none of it.

#pragma once

#include <filesystem>
#include <optional>
#include <ostream>
#include <string>

#include "launcher/protocol/rank_environment.h"
#include "trainer/options/options.h"
#include "trainer/outputs/launch_description.h"
#include "trainer/outputs/log_file.h"
#include "trainer/telemetry/formats/job_comment.h"
#include "trainer/telemetry/formats/mllog.h"
#include "trainer/telemetry/text/line_output.h"
#include "trainer/train/report/report.h"

namespace trainer {

struct RootOutputsOptions {
  std::filesystem::path json_path;
  LogFields parameters;   // of the run, for DLLogger
  LogFields launch;       // launch_description.h
  std::string device_id;  // the GPU's, or ""
  ProgressOptions progress;
  std::filesystem::path training_json;  // "": none
  std::filesystem::path mllog_path;     // "": none
  MlLogSubmission submission;
  std::filesystem::path tensorboard_dir;  // "": none
  std::string host;
  bool comments_job = false;
  std::string job_id;  // of the Slurm job whose comment that is; "": there is none
};

RootOutputsOptions MakeRootOutputsOptions(const Options& options, const launcher::RankInfo& rank,
                                          const std::string& device_id,
                                          const ProgressOptions& progress,
                                          const LaunchFacts& launch);

class RootOutputs {
 public:
  // A later launch of a run adds to what the earlier ones have written.  Makes tensorboard_dir.
  // `line`, on standard error, is for progress.  Lines that are lost, on a full disk, are told to
  // `log`: a training does not end for them, nor for a comment that its job does not get.
  // Throws Error(EX_OSERR) naming a file that cannot be written, and its option.
  RootOutputs(const RootOutputsOptions& options, RedrawnLine& line, const Logger& log);
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
  NvLog nvlog_{text_};
  DlLogger dllogger_;
  std::optional<MlLog> mllog_;
  std::optional<EventFile> events_;
  std::optional<TrainingJson> training_json_;
  std::optional<OrderInBackground> comment_order_;
  std::optional<JobComment> job_comment_;
  Progress progress_;
  std::optional<GpuMeter> gpu_;
};

}  // namespace trainer
