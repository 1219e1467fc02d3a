// SPDX-License-Identifier: Apache-2.0
//
// What rank 0 writes besides the log for people: NVLOG and DLLogger lines on standard output,
// DLLogger's JSON and what other programs read in files, progress on standard error.  The other
// ranks have none of it.

#pragma once

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "launcher/protocol/rank_environment.h"
#include "trainer/options/options.h"
#include "trainer/outputs/launch_description.h"
#include "trainer/outputs/log_file.h"
#include "trainer/telemetry/formats/event_file.h"
#include "trainer/telemetry/formats/job_comment.h"
#include "trainer/telemetry/formats/training_log.h"
#include "trainer/telemetry/text/line_output.h"
#include "trainer/telemetry/text/progress_options.h"
#include "trainer/train/logging/log_dispatcher.h"

namespace trainer {

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

}  // namespace trainer
