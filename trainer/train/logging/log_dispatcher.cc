// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/logging/log_dispatcher.h"

#include <fmt/format.h>

#include <cmath>

#include "support/number.h"
#include "trainer/data/shard_sampler.h"
#include "trainer/telemetry/text/clock.h"
#include "trainer/train/state/snapshot.h"
#include "trainer/train/step/non_finite_guard.h"

namespace trainer {
namespace {

std::string DescribeDecay(const Schedule& schedule) {
  switch (schedule.decay) {
    case RateDecay::kCosine:
      return "cosine decay";
    case RateDecay::kPolynomial:
      return fmt::format("polynomial decay to {:g} in {} steps", schedule.end_rate,
                         schedule.decay_steps);
    default:
      return "step decay";
  }
}

}  // namespace

std::vector<std::string> DescribeRun(const TrainConfig& config, int ranks, std::int64_t samples) {
  const GlobalBatch batch = GlobalBatchOf(config, ranks);
  std::vector<std::string> rows = {
      fmt::format("network           {}, {} classes, {} x {} pixels", config.arch, config.classes,
                  config.image_size, config.image_size),
      fmt::format("global batch      {} images ({})", batch.images(), DescribeSplit(batch)),
  };
  if (config.mode == RunMode::kEvaluate || config.mode == RunMode::kPredict) {
    rows.push_back(fmt::format("steps             {} for {}", EvaluationSteps(batch, samples),
                               support::Counted(samples, "image")));
    return rows;
  }
  const bool trains = IsTraining(config.mode);
  const Schedule schedule =
      MakeSchedule(config.schedule, samples, batch, trains ? "training" : "validation");
  rows.push_back(fmt::format("steps             {} in {} epochs of {}", schedule.total_steps,
                             schedule.epochs, schedule.whole_steps_per_epoch));
  if (trains) {
    rows.push_back(fmt::format("learning rate     {:g} after {} steps of warm-up, {}",
                               schedule.rescaled_rate, schedule.warmup_steps,
                               DescribeDecay(schedule)));
    const std::string note = TraitsOf(config.optimizer).note;
    if (!note.empty()) rows.push_back("optimizer         " + note);
  }
  return rows;
}

LogDispatcher::LogDispatcher(const TrainConfig& config, const Communicator& communicator,
                             const Outputs& outputs, std::optional<double> flop_per_image)
    : config_(config),
      outputs_(outputs),
      is_root_(communicator.rank() == 0),
      ranks_(communicator.size()),
      global_batch_(GlobalBatchOf(config, ranks_).images()),
      flop_per_image_(flop_per_image),
      display_every_(config.display_every) {}

void LogDispatcher::Say(const std::string& line) {
  if (!is_root_) return;
  outputs_.log->info("{}", line);
}

void LogDispatcher::StartTraining(const Schedule& schedule, const SetSizes& sizes) {
  schedule_ = schedule;
  first_step_ = schedule.start.step;
  EndWarmup();
  std::optional<double> end_learning_rate;
  if (schedule.decay == RateDecay::kPolynomial) end_learning_rate = schedule.end_rate;
  const TrainingSummary summary = {.seed = config_.seed,
                                   .world_size = ranks_,
                                   .batch_per_rank = config_.batch_size,
                                   .batches_per_step = config_.accumulate,
                                   .global_batch = global_batch_,
                                   .train_samples = sizes.training,
                                   .eval_samples = sizes.evaluation,
                                   .optimizer = TraitsOf(config_.optimizer).name,
                                   .initial_learning_rate = config_.schedule.lr_init,
                                   .base_learning_rate = schedule.rescaled_rate,
                                   .warmup_epochs = config_.schedule.lr_warmup_epochs,
                                   .decay_steps = schedule.decay_steps,
                                   .end_learning_rate = end_learning_rate,
                                   .momentum = config_.momentum,
                                   .weight_decay = config_.weight_decay,
                                   .first_step = first_step_,
                                   .first_epoch = schedule.EpochOf(first_step_),
                                   .total_steps = schedule.total_steps,
                                   .epochs = schedule.epochs,
                                   .steps_per_epoch = schedule.steps_per_epoch};
  for (TrainingLog* log : outputs_.logs) log->StartRun();
  for (TrainingLog* log : outputs_.logs) log->StartTraining(summary);
}

void LogDispatcher::EndWarmup() {
  if (outputs_.gpu != nullptr) outputs_.gpu->Restart();
}

StepMetrics LogDispatcher::Metrics(const StepResult& record) const {
  const std::int64_t epoch = schedule_.EpochOf(record.step);
  const bool counts_epochs = config_.schedule.iter_unit == IterationUnit::kEpoch;
  return {.step = record.step,
          .launch_step = record.launch_step,
          .total_steps = schedule_.total_steps,
          .epoch = epoch,
          .epochs = counts_epochs ? schedule_.epochs : 0,
          .ends_epoch = schedule_.EpochOf(record.step + 1) > epoch,
          .is_last = record.step + 1 >= schedule_.EndOfLaunch(first_step_),
          .is_displayed = record.launch_step % display_every_ == 0,
          .images_per_second = static_cast<double>(global_batch_) / record.times.step,
          .cross_entropy = record.cross_entropy,
          .l2_loss = record.l2_loss,
          .total_loss = record.total_loss(),
          .top1 = record.top1,
          .learning_rate = record.learning_rate,
          .gradient_norm = record.gradient_norm,
          .loss_scale = record.loss_scale,
          .skipped = record.skipped || record.left_out,
          .times = record.times};
}

void LogDispatcher::Step(const StepResult& record) {
  if (record.skipped) {
    Say(fmt::format("step {}: a gradient overflowed, the update is skipped; loss scale was {}",
                    record.step, record.loss_scale));
  }
  WatchNumbers(record);
  const StepMetrics metrics = Metrics(record);
  for (TrainingLog* log : outputs_.logs) log->Step(metrics);
}

void LogDispatcher::RolledBack(const std::string& found, const Position& from,
                               std::int64_t bad_step, const Schedule& schedule, int count) {
  const Position& start = schedule.start;
  Warn(
      fmt::format("{}: rolled back to step {} (--on_nan=rollback, {} of at most {} to this "
                  "checkpoint); the {} images from there to the end of step {} are skipped, "
                  "training continues after them in epoch {}",
                  found, start.step, count, Rollbacks::kMaxInARow, start.sample - from.sample,
                  bad_step, schedule.EpochOf(start.step) + 1));
  const std::int64_t bad_epoch = schedule_.EpochOf(bad_step);
  const RollbackSummary summary = {.first_step = start.step,
                                   .total_steps = schedule.total_steps,
                                   .skipped_images = start.skipped,
                                   .bad_epoch = bad_epoch,
                                   .ends_epoch = schedule_.EpochOf(bad_step + 1) > bad_epoch,
                                   .is_last = start.step >= schedule.EndOfLaunch(first_step_)};
  schedule_ = schedule;
  for (TrainingLog* log : outputs_.logs) log->RolledBack(summary);
}

void LogDispatcher::Pause(std::int64_t step) {
  Say(fmt::format("paused after step {}: ddlctl resume continues it, ddlctl stop ends it", step));
}

void LogDispatcher::Resume(std::int64_t step, double seconds) {
  for (TrainingLog* log : outputs_.logs) log->Resume(seconds);
  Say(fmt::format("resumed after step {}, paused for {}", step, FormatDuration(seconds)));
}

// Outliers; the first update that is left out.  How many those were is said at the end.
void LogDispatcher::WatchNumbers(const StepResult& record) {
  std::vector<std::string> warnings;
  const auto watch = [&](SpikeDetector& outliers, const char* what, double value) {
    const std::optional<Outlier> outlier = outliers.Add(value);
    if (!outlier) return;
    warnings.push_back(fmt::format(
        "step {}: the {} {:.4g} is far above that of the {} steps before (mean {:.4g}, standard "
        "deviation {:.4g})",
        record.step, what, value, SpikeDetector::kWindow, outlier->mean, outlier->deviation));
  };
  watch(loss_outliers_, "cross-entropy", record.cross_entropy);
  if (!record.skipped) watch(gradient_outliers_, "gradient norm", record.gradient_norm);
  if (record.left_out && left_out_++ == 0) {
    warnings.push_back(fmt::format(
        "step {}: {} is NaN or infinite: update skipped (--on_nan=skip); after {} such steps "
        "in a row the run ends, else its end says how many there were",
        record.step, std::isfinite(record.cross_entropy) ? "a gradient" : "the loss",
        NonFiniteGuard::kMaxInARow));
  }
  for (const std::string& warning : warnings) Warn(warning);
}

void LogDispatcher::Warn(const std::string& line) {
  if (!is_root_) return;
  outputs_.log->warn("{}", line);
}

void LogDispatcher::EndTraining(const StepTimer& times) {
  if (left_out_ > 0) {
    Say(fmt::format("{} left out, for the loss or a gradient was NaN or infinite (--on_nan=skip)",
                    left_out_ == 1 ? "1 update was" : fmt::format("{} updates were", left_out_)));
  }
  const StepTimes median = times.Median();
  std::optional<double> images_per_second;
  if (times.count() > 0) images_per_second = static_cast<double>(global_batch_) / median.step;
  for (TrainingLog* log : outputs_.logs) log->EndTraining(images_per_second);
  if (!images_per_second) return;
  std::string deps;
  for (std::size_t phase = 0; phase < kStepPhases; ++phase) {
    deps += fmt::format("{}{} {:.1f}", phase == 0 ? "" : ", ",
                        NameOf(static_cast<StepPhase>(phase)), median.phases[phase] * 1e3);
  }
  Say(fmt::format("median of {} steps: {:.1f} images/s, {:.1f} ms ({})", times.count(),
                  *images_per_second, median.step * 1e3, deps));
  LogGpuStats(*images_per_second / ranks_);
}

void LogDispatcher::LogGpuStats(double images_per_second) {
  if (outputs_.gpu == nullptr) return;
  const std::optional<GpuStats> figures = outputs_.gpu->Read();
  if (!figures) return;
  constexpr double kGigabyte = 1e9;
  std::string line = fmt::format("GPU of rank 0: {}, {:.1f} of {:.1f} GB in use", figures->model,
                                 static_cast<double>(figures->used_bytes) / kGigabyte,
                                 static_cast<double>(figures->total_bytes) / kGigabyte);
  if (figures->watts) line += fmt::format(", {:.0f} W", *figures->watts);
  const std::optional<double> peak = PeakFlopsOfCard(figures->model);
  if (flop_per_image_ && peak) {
    line += fmt::format(", MFU {:.1f} %", *flop_per_image_ * images_per_second / *peak * 100);
  }
  Say(line);
}

// No epoch is known where no step is trained.
std::int64_t LogDispatcher::EpochBefore(std::int64_t step) const {
  return schedule_.global_batch == 0 || step == 0 ? 0 : schedule_.EpochOf(step - 1);
}

void LogDispatcher::StartEvaluation(std::int64_t step, std::int64_t images) {
  const std::int64_t together = GlobalBatch{config_.batch_size, ranks_}.images();
  const EvaluationSummary summary = {.epoch = EpochBefore(step),
                                     .steps = (images + together - 1) / together,
                                     .global_batch = together};
  for (TrainingLog* log : outputs_.logs) log->StartEvaluation(summary);
}

void LogDispatcher::EndEvaluation(std::int64_t step, const EvaluationResult& result) {
  const EvaluationMetrics metrics = {.step = step,
                                     .epoch = EpochBefore(step),
                                     .top1 = result.top1,
                                     .top5 = result.top5,
                                     .cross_entropy = result.loss,
                                     .images_per_second = result.images_per_second};
  for (TrainingLog* log : outputs_.logs) log->EndEvaluation(metrics);
  Say(fmt::format(
      "evaluation of {} images: top-1 {:.3f} %, top-5 {:.3f} %, loss {:.4f}, "
      "{:.1f} images/s",
      result.images, result.top1 * 100, result.top5 * 100, result.loss, result.images_per_second));
}

void LogDispatcher::FoundBest(std::int64_t step, double top1) {
  Say(fmt::format(
      "the best so far: the checkpoint of step {}, with top-1 {:.3f} %, is kept until a better one "
      "is written",
      step, top1 * 100));
}

void LogDispatcher::ReachedTarget(std::int64_t step, double top1) {
  Say(
      fmt::format("training is complete: top-1 is {:.3f} % after step {}, as --stop_at_top1={:g} "
                  "asks for",
                  top1 * 100, step, config_.stop_at_top1));
}

void LogDispatcher::EndRun(bool complete) {
  for (TrainingLog* log : outputs_.logs) log->EndRun(complete);
}

void LogDispatcher::EndInferenceBenchmark(double median_seconds, std::int64_t steps) {
  const double images_per_second = static_cast<double>(global_batch_) / median_seconds;
  for (TrainingLog* log : outputs_.logs) log->EndInferenceBenchmark(images_per_second);
  Say(fmt::format("median of {} steps: {:.1f} images/s, {:.1f} ms", steps, images_per_second,
                  median_seconds * 1e3));
}

}  // namespace trainer
