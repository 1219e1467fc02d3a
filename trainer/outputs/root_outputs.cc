// SPDX-License-Identifier: Apache-2.0

#include "trainer/outputs/root_outputs.h"

#include <unistd.h>

#include <filesystem>
#include <utility>

#include "trainer/checkpoint/names.h"
#include "trainer/outputs/logged_parameters.h"
#include "trainer/outputs/run_directories.h"
#include "trainer/telemetry/formats/dllogger.h"
#include "trainer/telemetry/formats/mllog.h"
#include "trainer/telemetry/formats/nvlog.h"
#include "trainer/telemetry/formats/progress.h"
#include "trainer/telemetry/formats/training_json.h"

namespace trainer {
namespace {

constexpr char kStandardOutput[] = "standard output";

// Both are on one terminal, as far as anybody can tell.
std::function<void()> BeforeText(const ProgressOptions& progress, RedrawnLine& line) {
  if (!progress.beside_text) return nullptr;
  return [&line] { line.End(); };
}

}  // namespace

RootOutputs::RootOutputs(const RootOutputsDeps& deps, RedrawnLine& line, const Logger& log)
    : log_(log),
      json_(deps.options.results_dir / deps.options.log_filename,
            "another --results_dir or --log_filename", log),
      text_buffer_(STDOUT_FILENO, /*is_own=*/false, LogDroppedOutput(log, kStandardOutput),
                   BeforeText(deps.progress, line)) {
  const Options& options = deps.options;
  const std::string host = deps.rank.host.empty() ? HostName() : deps.rank.host;
  if (!deps.device_id.empty()) gpu_.emplace("libnvidia-ml.so.1", deps.device_id);

  logs_.push_back(std::make_unique<NvLog>(text_));

  auto dllogger = std::make_unique<DlLogger>(&text_, &json_.stream());
  dllogger->Parameters(LoggedParameters(options));
  dllogger->Metadata("run", DescribeLaunch(deps.launch, deps.rank, host));
  for (const char* metric : {"imgs_per_sec", "train_throughput", "eval_throughput"}) {
    dllogger->Metadata(metric, {{"unit", "images/s"}});
  }
  logs_.push_back(std::move(dllogger));

  if (!options.mllog.empty()) {
    mllog_file_.emplace(options.mllog, "another --mllog", log);
    logs_.push_back(std::make_unique<MlLog>(
        mllog_file_->stream(), MlLogSubmission{options.mllog_division, options.mllog_org,
                                               options.mllog_platform, options.mllog_status}));
  }
  if (KeepsWeights(options.mode)) {
    const std::filesystem::path path = options.results_dir / "training.json";
    TryToWrite(path, "another --results_dir");
    logs_.push_back(std::make_unique<TrainingJson>(path, LogOldText(log, path.string())));
  }
  if (!options.tensorboard_dir.empty()) {
    MakeDirectory(options.tensorboard_dir, "--tensorboard_dir");
    auto events =
        std::make_unique<EventFile>(options.tensorboard_dir, host, "another --tensorboard_dir",
                                    LogDroppedOutput(log, options.tensorboard_dir, "events"));
    events_ = events.get();
    logs_.push_back(std::move(events));
  }
  logs_.push_back(std::make_unique<Progress>(deps.progress, line));
  if (options.job_comment) CommentJob(deps.launch.job);
}

void RootOutputs::CommentJob(const std::string& job_id) {
  if (job_id.empty()) {
    log_->warn("--job_comment: there is no Slurm job to comment on (SLURM_JOB_ID is not set)");
    return;
  }
  comment_order_.emplace([log = log_, has_reported = false](const std::string& why) mutable {
    if (std::exchange(has_reported, true)) return;
    log->warn("--job_comment: the comment of the job may be an old one: {}", why);
  });
  logs_.push_back(std::make_unique<JobComment>([this, job_id](const std::string& comment) {
    comment_order_->Give(CommentOrder(job_id, comment));
  }));
}

Outputs RootOutputs::outputs() {
  Outputs outputs = {.log = log_, .gpu = gpu_ ? &*gpu_ : nullptr};
  for (const auto& log : logs_) outputs.logs.push_back(log.get());
  return outputs;
}

bool RootOutputs::End() {
  json_.LogDroppedOutputs();
  if (mllog_file_) mllog_file_->LogDroppedOutputs();
  if (events_ != nullptr) {
    LogDroppedOutputs(log_, events_->path().string(), events_->lost_events(), "event");
  }
  LogDroppedOutputs(log_, kStandardOutput, text_buffer_.lost_lines());
  return text_buffer_.lost_lines() == 0;
}

}  // namespace trainer
