// SPDX-License-Identifier: Apache-2.0

#include "trainer/outputs/root_outputs.h"

#include <unistd.h>

#include <iostream>
#include <utility>

#include "trainer/checkpoint/names.h"
#include "trainer/outputs/logged_parameters.h"
#include "trainer/outputs/run_folders.h"

namespace trainer {
namespace {

constexpr char kStandardOutput[] = "standard output";

template <typename T>
T* PointerTo(std::optional<T>& value) {
  return value ? &*value : nullptr;
}

// Both are on one terminal, as far as anybody can tell.
std::function<void()> BeforeText(const ProgressOptions& progress, RedrawnLine& line) {
  if (!progress.beside_text) return nullptr;
  return [&line] { line.End(); };
}

}  // namespace

RootOutputsOptions MakeRootOutputsOptions(const Options& options, const launcher::RankInfo& rank,
                                          const std::string& device_id,
                                          const ProgressOptions& progress,
                                          const LaunchFacts& launch) {
  const std::filesystem::path& folder = options.results_dir;
  const std::string host = rank.host.empty() ? HostName() : rank.host;
  return {.json_path = folder / options.log_filename,
          .parameters = LoggedParameters(options),
          .launch = DescribeLaunch(launch, rank, host),
          .device_id = device_id,
          .progress = progress,
          .training_json =
              KeepsWeights(options.mode) ? folder / "training.json" : std::filesystem::path(),
          .mllog_path = options.mllog,
          .submission = {options.mllog_org, options.mllog_platform, options.mllog_status},
          .tensorboard_dir = options.tensorboard_dir,
          .host = host,
          .comments_job = options.job_comment,
          .job_id = launch.job};
}

RootOutputs::RootOutputs(const RootOutputsOptions& options, RedrawnLine& line, const Logger& log)
    : log_(log),
      json_(options.json_path, "another --results_dir or --log_filename", log),
      text_buffer_(STDOUT_FILENO, /*is_own=*/false, TellLoss(log, kStandardOutput),
                   BeforeText(options.progress, line)),
      dllogger_(&text_, &json_.stream()),
      progress_(options.progress, line) {
  if (!options.device_id.empty()) gpu_.emplace("libnvidia-ml.so.1", options.device_id);
  dllogger_.Parameters(options.parameters);
  if (!options.launch.empty()) dllogger_.Metadata("run", options.launch);
  for (const char* metric : {"imgs_per_sec", "train_throughput", "eval_throughput"}) {
    dllogger_.Metadata(metric, {{"unit", "images/s"}});
  }
  if (!options.mllog_path.empty()) {
    mllog_file_.emplace(options.mllog_path, "another --mllog", log);
    mllog_.emplace(mllog_file_->stream(), options.submission);
  }
  if (!options.training_json.empty()) {
    TryToWrite(options.training_json, "another --results_dir");
    training_json_.emplace(options.training_json, TellOldText(log, options.training_json.string()));
  }
  if (!options.tensorboard_dir.empty()) {
    MakeFolder(options.tensorboard_dir, "--tensorboard_dir");
    events_.emplace(options.tensorboard_dir, options.host, "another --tensorboard_dir",
                    TellLoss(log, options.tensorboard_dir.string(), "events"));
  }
  if (options.comments_job) CommentJob(options.job_id);
}

void RootOutputs::CommentJob(const std::string& job_id) {
  if (job_id.empty()) {
    log_->warn("--job_comment: there is no Slurm job to comment on (SLURM_JOB_ID is not set)");
    return;
  }
  comment_order_.emplace([log = log_, has_told = false](const std::string& why) mutable {
    if (std::exchange(has_told, true)) return;
    log->warn("--job_comment: the comment of the job may be an old one: {}", why);
  });
  job_comment_.emplace([this, job_id](const std::string& comment) {
    comment_order_->Give(CommentOrder(job_id, comment));
  });
}

Outputs RootOutputs::outputs() {
  return {.log = log_,
          .nvlog = &nvlog_,
          .dllogger = &dllogger_,
          .mllog = PointerTo(mllog_),
          .events = PointerTo(events_),
          .training_json = PointerTo(training_json_),
          .progress = &progress_,
          .job_comment = PointerTo(job_comment_),
          .gpu = PointerTo(gpu_)};
}

bool RootOutputs::End() {
  json_.TellLosses();
  if (mllog_file_) mllog_file_->TellLosses();
  if (events_) TellLosses(log_, events_->path().string(), events_->lost_events(), "event");
  TellLosses(log_, kStandardOutput, text_buffer_.lost_lines());
  return text_buffer_.lost_lines() == 0;
}

}  // namespace trainer
