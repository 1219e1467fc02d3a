// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "trainer/train/state/rollbacks.h"
#include "trainer/train/step/nan_watch.h"

namespace trainer {

Report::Report(const TrainConfig& config, const Communicator& communicator, const Outputs& outputs,
               std::optional<ImageWork> work)
    : config_(config),
      outputs_(outputs),
      is_root_(communicator.rank() == 0),
      ranks_(communicator.size()),
      global_batch_(GlobalBatchOf(config, ranks_).images()),
      work_(work),
      display_every_(config.display_every) {}

void Report::Say(const std::string& line) {
  if (!is_root_) return;
  outputs_.log->info("{}", line);
}

IterationMetrics Report::Metrics(const StepRecord& record) const {
  IterationMetrics metrics;
  metrics.iteration = record.launch_step;
  metrics.images_per_second = static_cast<double>(global_batch_) / record.times.step;
  metrics.cross_entropy = record.cross_entropy;
  metrics.l2_loss = record.l2_loss;
  metrics.total_loss = record.total_loss();
  metrics.learning_rate = record.learning_rate;
  return metrics;
}

void Report::StartTraining(const Schedule& schedule, const SetSizes& sizes) {
  schedule_ = schedule;
  first_step_ = schedule.start.step;
  EndWarmup();
  if (outputs_.dllogger != nullptr) outputs_.dllogger->Start();
  if (outputs_.nvlog != nullptr) StartNvlog();
  if (outputs_.mllog != nullptr) StartMllog(sizes);
  if (outputs_.events != nullptr) outputs_.events->StartSession(schedule_.start.step);
  if (outputs_.prometheus != nullptr) {
    outputs_.prometheus->StartTraining(schedule_.total_steps, global_batch_);
  }
}

void Report::StartNvlog() {
  TrainingSummary summary;
  summary.epochs = schedule_.epochs;
  summary.total_steps = schedule_.total_steps;
  summary.steps_per_epoch = schedule_.steps_per_epoch;
  summary.decay_steps = schedule_.decay_steps;
  summary.weight_decay = config_.weight_decay;
  summary.initial_learning_rate = config_.schedule.lr_init;
  summary.momentum = config_.momentum;
  summary.world_size = ranks_;
  summary.batch_per_rank = config_.batch_size;
  outputs_.nvlog->StartTraining(summary);
}

void Report::StartMllog(const SetSizes& sizes) {
  MlLogTraining training;
  training.seed = config_.seed;
  training.global_batch = global_batch_;
  training.batches_per_step = config_.accumulate;
  training.batch_per_rank = config_.batch_size;
  training.train_samples = sizes.training;
  training.eval_samples = sizes.evaluation;
  training.base_learning_rate = schedule_.rescaled_rate;
  training.warmup_epochs = config_.schedule.lr_warmup_epochs;
  training.decay_steps = schedule_.decay_steps;
  training.momentum = config_.momentum;
  training.weight_decay = config_.weight_decay;
  training.first_epoch = schedule_.EpochOf(schedule_.start.step);
  training.epochs = schedule_.epochs;
  outputs_.mllog->StartTraining(training);
}

void Report::EndWarmup() {
  if (outputs_.gpu != nullptr) outputs_.gpu->Restart();
}

void Report::Step(const StepRecord& record) {
  const IterationMetrics metrics = Metrics(record);
  const std::int64_t epoch = schedule_.EpochOf(record.step);
  const bool ends_epoch = schedule_.EpochOf(record.step + 1) > epoch;
  const bool is_displayed = record.launch_step % display_every_ == 0;
  if (record.skipped) {
    Say(fmt::format("step {}: a gradient overflowed, the update is skipped; loss scale was {}",
                    record.step, record.loss_scale));
  }
  WatchNumbers(record);
  if (outputs_.nvlog != nullptr) {
    if (is_displayed) outputs_.nvlog->Iteration(metrics);
    if (ends_epoch) outputs_.nvlog->Epoch(epoch, metrics);
  }
  if (outputs_.training_json != nullptr) {
    outputs_.training_json->Iteration(metrics, is_displayed);
    if (ends_epoch) outputs_.training_json->Epoch(epoch, metrics);
  }
  if (outputs_.mllog != nullptr && ends_epoch) {
    outputs_.mllog->EndEpoch(epoch, record.step + 1 < schedule_.EndOfLaunch(first_step_));
  }
  if (outputs_.dllogger != nullptr && record.launch_step >= kUnloggedSteps) {
    outputs_.dllogger->Log({epoch, record.step}, {{"imgs_per_sec", metrics.images_per_second},
                                                  {"cross_entropy", metrics.cross_entropy},
                                                  {"l2_loss", metrics.l2_loss},
                                                  {"total_loss", metrics.total_loss},
                                                  {"learning_rate", metrics.learning_rate}});
  }
  if (outputs_.events != nullptr && is_displayed) StepEvents(record, metrics);
  if (outputs_.prometheus != nullptr) {
    outputs_.prometheus->Step({.steps = record.step + 1,
                               .epochs = schedule_.EpochOf(record.step + 1),
                               .cross_entropy = record.cross_entropy,
                               .l2_loss = record.l2_loss,
                               .top1 = record.top1,
                               .learning_rate = record.learning_rate,
                               .loss_scale = record.loss_scale,
                               .skipped = record.skipped || record.left_out,
                               .times = record.times});
  }
  if (outputs_.progress == nullptr && outputs_.job_comment == nullptr) return;
  ProgressState state;
  state.epoch = epoch;
  state.epochs = config_.schedule.iter_unit == IterationUnit::kEpoch ? schedule_.epochs : 0;
  state.step = record.step + 1;
  state.total_steps = schedule_.total_steps;
  state.images_per_second = metrics.images_per_second;
  state.loss = metrics.total_loss;
  state.learning_rate = metrics.learning_rate;
  if (outputs_.progress != nullptr) outputs_.progress->Update(state);
  if (outputs_.job_comment != nullptr) outputs_.job_comment->Step(state);
}

void Report::RollBack(const std::string& found) {
  Warn(fmt::format("{}: going back to the newest checkpoint (--on_nan=rollback)", found));
}

void Report::RolledBack(const Position& from, std::int64_t bad_step, const Schedule& schedule,
                        int count) {
  const Position& start = schedule.start;
  Warn(fmt::format(
      "back at step {}: the {} images from there to the end of step {} are skipped, training "
      "goes on behind "
      "them in epoch {} (rollback {} of at most {} to this checkpoint)",
      start.step, start.sample - from.sample, bad_step, schedule.EpochOf(start.step) + 1, count,
      Rollbacks::kMostInARow));
  const std::int64_t epoch = schedule_.EpochOf(bad_step);
  const bool ends_epoch = schedule_.EpochOf(bad_step + 1) > epoch;
  schedule_ = schedule;
  if (outputs_.mllog != nullptr && ends_epoch) {
    outputs_.mllog->EndEpoch(epoch, start.step < schedule.EndOfLaunch(first_step_));
  }
  if (outputs_.events != nullptr) {
    outputs_.events->StartSession(start.step);
    outputs_.events->Scalars(
        start.step,
        std::array<Scalar, 1>{{{"train/skipped_images", static_cast<double>(start.skipped)}}});
  }
  if (outputs_.prometheus != nullptr) {
    outputs_.prometheus->StartTraining(schedule_.total_steps, global_batch_);
    outputs_.prometheus->RolledBack();
  }
}

void Report::Pause(std::int64_t step) {
  Say(fmt::format("paused after step {}: ddlctl resume lets it go on, ddlctl stop ends it", step));
}

void Report::GoOn(std::int64_t step, double seconds) {
  if (outputs_.progress != nullptr) outputs_.progress->LeaveOut(seconds);
  Say(fmt::format("going on after step {}, paused for {}", step, FormatDuration(seconds)));
}

// Outliers; the first update that is left out.  How many those were is said at the end.
void Report::WatchNumbers(const StepRecord& record) {
  std::vector<std::string> warnings;
  const auto watch = [&](OutlierWatch& outliers, const char* what, double value) {
    const std::optional<Outlier> outlier = outliers.Add(value);
    if (!outlier) return;
    warnings.push_back(fmt::format(
        "step {}: the {} {:.4g} is far above that of the {} steps before (mean {:.4g}, standard "
        "deviation {:.4g})",
        record.step, what, value, OutlierWatch::kWindow, outlier->mean, outlier->deviation));
  };
  watch(loss_outliers_, "cross-entropy", record.cross_entropy);
  if (!record.skipped) watch(gradient_outliers_, "gradient norm", record.gradient_norm);
  if (record.left_out && left_out_++ == 0) {
    warnings.push_back(fmt::format(
        "step {}: {} is no number, and the update is left out (--on_nan=skip); after {} such steps "
        "in a row the run ends, else its end says how many there were",
        record.step, std::isfinite(record.cross_entropy) ? "a gradient" : "the loss",
        NanWatch::kMostInARow));
  }
  for (const std::string& warning : warnings) Warn(warning);
}

void Report::Warn(const std::string& line) {
  if (!is_root_) return;
  outputs_.log->warn("{}", line);
}

void Report::StepEvents(const StepRecord& record, const IterationMetrics& metrics) {
  const StepTimes& times = record.times;
  outputs_.events->Scalars(
      record.step,
      std::array<Scalar, 14>{{{"train/images_per_second", metrics.images_per_second},
                              {"train/cross_entropy", metrics.cross_entropy},
                              {"train/l2_loss", metrics.l2_loss},
                              {"train/total_loss", metrics.total_loss},
                              {"train/top1", record.top1},
                              {"train/learning_rate", metrics.learning_rate},
                              {"train/gradient_norm", record.gradient_norm},
                              {"train/loss_scale", record.loss_scale},
                              {"seconds/step", times.step},
                              {"seconds/input_wait", times[StepPhase::kInputWait]},
                              {"seconds/forward", times[StepPhase::kForward]},
                              {"seconds/backward", times[StepPhase::kBackward]},
                              {"seconds/exposed_all_reduce", times[StepPhase::kExposedAllReduce]},
                              {"seconds/update", times[StepPhase::kUpdate]}}});
}

void Report::EndTraining(const StepTimer& times) {
  if (left_out_ > 0) {
    Say(fmt::format("{} left out, for the loss or a gradient was no number (--on_nan=skip)",
                    left_out_ == 1 ? "1 update was" : fmt::format("{} updates were", left_out_)));
  }
  if (outputs_.nvlog != nullptr) outputs_.nvlog->EndTraining();
  if (outputs_.training_json != nullptr) outputs_.training_json->End();
  if (outputs_.mllog != nullptr) outputs_.mllog->EndTraining();
  if (times.count() == 0) return;
  const StepTimes median = times.Median();
  const double images_per_second = static_cast<double>(global_batch_) / median.step;
  if (outputs_.dllogger != nullptr) {
    outputs_.dllogger->Log({}, {{"train_throughput", images_per_second}});
  }
  std::string parts;
  for (std::size_t phase = 0; phase < kStepPhases; ++phase) {
    parts += fmt::format("{}{} {:.1f}", phase == 0 ? "" : ", ",
                         NameOf(static_cast<StepPhase>(phase)), median.phases[phase] * 1e3);
  }
  Say(fmt::format("median of {} steps: {:.1f} images/s, {:.1f} ms ({})", times.count(),
                  images_per_second, median.step * 1e3, parts));
  SayFiguresOfGpu(images_per_second / ranks_);
}

void Report::SayFiguresOfGpu(double images_per_second) {
  if (outputs_.gpu == nullptr) return;
  const std::optional<GpuFigures> figures = outputs_.gpu->Read();
  if (!figures) return;
  constexpr double kGigabyte = 1e9;
  std::string line = fmt::format("GPU of rank 0: {}, {:.1f} of {:.1f} GB in use", figures->model,
                                 static_cast<double>(figures->used_bytes) / kGigabyte,
                                 static_cast<double>(figures->total_bytes) / kGigabyte);
  if (figures->watts) line += fmt::format(", {:.0f} W", *figures->watts);
  const std::optional<CardPeak> peak = PeakOfCard(figures->model);
  if (work_ && peak) {
    const RooflineShare share = ShareOfRoofline(*work_, *peak, images_per_second);
    line += fmt::format(", {:.1f} % of its roofline (compute {:.1f} %, memory {:.1f} %)",
                        share.both() * 100, share.compute * 100, share.memory * 100);
  }
  Say(line);
}

// No epoch is known where no step is trained.
std::int64_t Report::EpochBefore(std::int64_t step) const {
  return schedule_.global_batch == 0 || step == 0 ? 0 : schedule_.EpochOf(step - 1);
}

void Report::StartEvaluation(std::int64_t step, std::int64_t images) {
  if (outputs_.mllog != nullptr) outputs_.mllog->StartEvaluation(EpochBefore(step));
  if (outputs_.nvlog == nullptr) return;
  EvaluationSummary summary;
  const std::int64_t together = GlobalBatch{config_.batch_size, ranks_}.images();
  summary.steps = (images + together - 1) / together;
  summary.global_batch = together;
  outputs_.nvlog->StartEvaluation(summary);
}

void Report::EndEvaluation(std::int64_t step, const EvaluationResult& result) {
  if (outputs_.nvlog != nullptr) {
    outputs_.nvlog->Accuracy(result.top1, result.top5);
    outputs_.nvlog->EndEvaluation();
  }
  if (outputs_.mllog != nullptr) outputs_.mllog->EndEvaluation(EpochBefore(step), result.top1);
  if (outputs_.events != nullptr) {
    // That of the update which made these weights.  TensorBoard drops what stands at the step from
    // which a launch goes on, or behind it.
    outputs_.events->Scalars(
        std::max<std::int64_t>(step - 1, 0),
        std::array<Scalar, 4>{{{"evaluation/top1", result.top1},
                               {"evaluation/top5", result.top5},
                               {"evaluation/cross_entropy", result.loss},
                               {"evaluation/images_per_second", result.images_per_second}}});
  }
  if (outputs_.prometheus != nullptr) {
    outputs_.prometheus->Evaluated({.top1 = result.top1,
                                    .top5 = result.top5,
                                    .cross_entropy = result.loss,
                                    .images_per_second = result.images_per_second});
  }
  if (outputs_.dllogger != nullptr) {
    outputs_.dllogger->Log({}, {{"top1_accuracy", result.top1},
                                {"top5_accuracy", result.top5},
                                {"eval_loss", result.loss},
                                {"eval_throughput", result.images_per_second}});
  }
  Say(fmt::format(
      "evaluation of {} images: top-1 {:.3f} %, top-5 {:.3f} %, loss {:.4f}, "
      "{:.1f} images/s",
      result.images, result.top1 * 100, result.top5 * 100, result.loss, result.images_per_second));
}

void Report::FoundBest(std::int64_t step, double top1) {
  Say(fmt::format(
      "the best so far: the checkpoint of step {}, with top-1 {:.3f} %, is kept until a better one "
      "is written",
      step, top1 * 100));
}

void Report::ReachedTarget(std::int64_t step, double top1) {
  Say(
      fmt::format("training is complete: top-1 is {:.3f} % after step {}, as --stop_at_top1={:g} "
                  "asks for",
                  top1 * 100, step, config_.stop_at_top1));
}

void Report::EndRun(bool complete) {
  if (outputs_.mllog != nullptr) outputs_.mllog->EndRun(complete);
}

void Report::EndInferenceBenchmark(double median_seconds, std::int64_t steps) {
  const double images_per_second = static_cast<double>(global_batch_) / median_seconds;
  if (outputs_.dllogger != nullptr) {
    outputs_.dllogger->Log({}, {{"eval_throughput", images_per_second}});
  }
  Say(fmt::format("median of {} steps: {:.1f} images/s, {:.1f} ms", steps, images_per_second,
                  median_seconds * 1e3));
}

}  // namespace trainer
