// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/formats/mllog.h"

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <utility>

namespace trainer {

MlLog::MlLog(std::ostream& out, const MlLogSubmission& submission, WallClock clock)
    : out_(out), clock_(std::move(clock)) {
  Point("submission_benchmark", "resnet");
  Point("submission_division", "open");
  Point("submission_org", submission.org);
  Point("submission_platform", submission.platform);
  Point("submission_status", submission.status);
  // The caches of the file system are the job's to clear, not this program's.
  Point("cache_clear", false);
  Start("init_start", {});
}

void MlLog::StartTraining(const MlLogTraining& training) {
  training_ = training;
  Point("seed", training.seed);
  Point("global_batch_size", training.global_batch);
  Point("gradient_accumulation_steps", training.batches_per_step);
  Point("train_samples", training.train_samples);
  Point("eval_samples", training.eval_samples);
  Point("opt_name", "sgd");
  Point("sgd_opt_base_learning_rate", training.base_learning_rate);
  Point("opt_learning_rate_warmup_epochs", training.warmup_epochs);
  Point("sgd_opt_learning_rate_decay_steps", training.decay_steps);
  Point("sgd_opt_momentum", training.momentum);
  Point("sgd_opt_weight_decay", training.weight_decay);
  Point("model_bn_span", training.batch_per_rank);
  Stop("init_stop", {});
  Start("run_start", {});
  is_running_ = true;
  Start("block_start", {{"first_epoch_num", training.first_epoch + 1},
                        {"epoch_count", training.epochs - training.first_epoch}});
  StartEpoch(training.first_epoch);
}

void MlLog::StartEpoch(std::int64_t epoch) {
  open_epoch_ = epoch;
  Start("epoch_start", Epoch(epoch));
}

void MlLog::EndEpoch(std::int64_t epoch, bool more) {
  Stop("epoch_stop", Epoch(epoch));
  open_epoch_ = -1;
  if (more) StartEpoch(epoch + 1);
}

void MlLog::EndTraining() {
  if (open_epoch_ >= 0) EndEpoch(open_epoch_, false);
  Stop("block_stop", {{"first_epoch_num", training_.first_epoch + 1}});
}

void MlLog::StartEvaluation(std::int64_t epoch) {
  // A launch that finds its training done only evaluates: that is no run.
  if (is_running_) Start("eval_start", Epoch(epoch));
}

void MlLog::EndEvaluation(std::int64_t epoch, double top1) {
  if (!is_running_) return;
  Point("eval_accuracy", top1, Epoch(epoch));
  Stop("eval_stop", Epoch(epoch));
}

void MlLog::EndRun(bool success) {
  if (!is_running_) return;
  Stop("run_stop", {{"status", success ? "success" : "aborted"}});
  is_running_ = false;
}

LogFields MlLog::Epoch(std::int64_t epoch) const { return {{"epoch_num", epoch + 1}}; }

void MlLog::Point(std::string_view key, const LogValue& value, const LogFields& metadata) {
  Line("POINT_IN_TIME", key, PythonJson(value), metadata);
}

void MlLog::Start(std::string_view key, const LogFields& metadata) {
  Line("INTERVAL_START", key, "null", metadata);
}

void MlLog::Stop(std::string_view key, const LogFields& metadata) {
  Line("INTERVAL_END", key, "null", metadata);
}

void MlLog::Line(std::string_view type, std::string_view key, std::string_view value,
                 const LogFields& metadata) {
  const auto milliseconds =
      std::chrono::floor<std::chrono::milliseconds>(clock_().time_since_epoch()).count();
  out_ << fmt::format(
              ":::MLLOG {{\"namespace\": \"\", \"time_ms\": {}, \"event_type\": \"{}\", "
              "\"key\": \"{}\", \"value\": {}, \"metadata\": {}}}\n",
              milliseconds, type, key, value, PythonJson(metadata))
       << std::flush;
}

}  // namespace trainer
