// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "trainer/core/error.h"
#include "trainer/model/init.h"
#include "trainer/model/weight_layout.h"
#include "trainer/train/checkpoints.h"
#include "trainer/train/device_batch.h"
#include "trainer/train/loop_control.h"
#include "trainer/train/loss_scale.h"
#include "trainer/train/metrics.h"
#include "trainer/train/network_state.h"
#include "trainer/train/rank_comparison.h"
#include "trainer/train/snapshot.h"
#include "trainer/train/state_dump.h"
#include "trainer/train/step_trace.h"
#include "trainer/train/training_step.h"

namespace trainer {
namespace {

NetworkPlan TakePlan(const TrainConfig& config, const TrainParts& parts) {
  if (parts.network != nullptr) return std::move(*parts.network);
  return PlanNetwork(parts.backend, NetworkSpecOf(config));
}

LossScale LossScaleOf(const TrainConfig& config, const Backend& backend) {
  if (backend.compute_type() == DType::kFloat32) return LossScale::Static(1);
  return config.static_loss_scale ? LossScale::Static(config.loss_scale)
                                  : LossScale::Dynamic(config.loss_scale);
}

// What the rooflines are about.
std::optional<ImageWork> WorkOf(const TrainConfig& config, const Backend& backend) {
  const bool is_known = config.architecture == "resnet50" && config.height == 224 &&
                        config.width == 224 && backend.compute_type() != DType::kFloat32;
  return is_known ? std::optional(kResNet50Work) : std::nullopt;
}

class Trainer {
 public:
  Trainer(const TrainConfig& config, const TrainParts& parts)
      : config_(config),
        parts_(parts),
        network_(parts.backend, TakePlan(config, parts)),
        stream_(parts.backend.MakeStream()),
        device_batch_(parts.backend, network_.spec()),
        loss_scale_(LossScaleOf(config, parts.backend)),
        report_(config, parts.communicator, parts.outputs, WorkOf(config, parts.backend)),
        control_(parts, report_) {
    if (parts.communicator.size() > 1) {
      parts.agree(WeightLayout(network_, parts.backend, *stream_));
      if (config.compare_every > 0) {
        comparison_.emplace(parts.backend, network_, parts.communicator, parts.host);
      }
    } else if (config.compare_every > 0) {
      parts.outputs.log->warn("--paranoid compares ranks: one rank has none to be compared with");
    }
  }

  TrainResult Train();
  TrainResult EvaluateSaved();
  TrainResult Predict();
  TrainResult BenchmarkTraining();
  TrainResult BenchmarkInference();

 private:
  SnapshotParts snapshot_parts() {
    return {config_,  network_,           parts_.communicator,
            *stream_, parts_.outputs.log, parts_.backend.compute_type()};
  }

  Position FirstPosition();
  void InitializeAfresh();
  // To the end of this launch, from where the schedule starts.
  void TrainSteps();
  TrainingStep::Outcome RunStep(TrainingStep& training_step);
  void CompareRanks();
  void Save(Checkpoints::Wait wait);
  void Stop();
  void Rest();
  void DumpState(const TrainingStep& training_step);
  void LoadWeights();
  void RunEvaluation();
  std::int64_t BenchmarkSteps(const Source& source);
  double InferenceSeconds();

  const TrainConfig& config_;
  const TrainParts& parts_;
  Network network_;
  std::unique_ptr<Stream> stream_;
  DeviceBatch device_batch_;
  LossScale loss_scale_;
  Report report_;
  LoopControl control_;
  Schedule schedule_;
  StepTimer times_;
  TrainResult result_;
  std::int64_t saved_step_ = -1;
  std::optional<RankComparison> comparison_;
  std::int64_t compared_step_ = -1;
  std::optional<Checkpoints> checkpoints_;  // of a training that keeps its weights
};

TrainResult Trainer::Train() {
  schedule_ = MakeSchedule(config_.schedule, parts_.training->samples(), config_.batch,
                           parts_.communicator.size());
  schedule_ = schedule_.From(FirstPosition());
  checkpoints_.emplace(CheckpointsParts{snapshot_parts(), parts_.backend,
                                        parts_.training->samples(), parts_.requests,
                                        parts_.checkpoint_hook});
  TrainSteps();
  if (saved_step_ != result_.step) Save(Checkpoints::Wait::kForFile);
  control_.Obeyed();  // all that was asked for and is not done is needless now

  const bool complete = result_.step >= schedule_.total_steps;
  if (complete && !config_.export_file.empty()) {
    ExportModel(snapshot_parts(), config_.export_file);
  }
  if (complete && config_.mode == RunMode::kTrainAndEvaluate) RunEvaluation();
  report_.EndRun(result_.evaluation.has_value());
  return result_;
}

// The weights, and from where they are to go on.
Position Trainer::FirstPosition() {
  if (config_.resume) {
    const TrainingAhead ahead = {schedule_, parts_.training->samples()};
    if (const auto position = RestoreSnapshot(snapshot_parts(), loss_scale_, ahead)) {
      saved_step_ = position->step;
      control_.Found(saved_step_);
      return *position;
    }
  } else {
    RefuseUsedFolder(snapshot_parts());
  }
  if (!config_.init_from.empty()) {
    InitializeFromFile(snapshot_parts());
  } else {
    InitializeAfresh();
  }
  return {};
}

// Rank 0's values count: logarithms and square roots of other processors and C libraries may differ
// in the last bit, and what starts apart stays apart.
void Trainer::InitializeAfresh() {
  if (parts_.communicator.rank() == 0) {
    Initialize(network_, {config_.seed, config_.weight_init, config_.zero_init_residual}, *stream_);
  }
  BroadcastPart(network_, Network::Part::kValue, parts_.communicator, *stream_);
}

void Trainer::TrainSteps() {
  const bool keeps_files = config_.mode != RunMode::kTrainingBenchmark;
  const std::int64_t first = schedule_.start.step;
  const std::int64_t end = schedule_.EndOfLaunch(first);
  result_.step = first;
  if (parts_.communicator.rank() == 0 && !config_.dump_state.empty() &&
      (config_.dump_state_step <= first || config_.dump_state_step > end)) {
    parts_.outputs.log->warn(
        "--dump_state writes nothing: step {} is not among the steps {} to {} of this launch",
        config_.dump_state_step, first + 1, end);
  }
  if (first >= end) return;

  TrainingStep training_step({config_, parts_.backend, network_, device_batch_, parts_.communicator,
                              *stream_, loss_scale_, *parts_.training, end, parts_.spans});
  StepTrace trace(config_, parts_.communicator, parts_.spans, parts_.outputs.log);
  trace.CheckSteps(first, end);
  StepProfile profile(config_, parts_.profile, network_, parts_.outputs.log);
  profile.CheckSteps(first, end);
  VariabilityLog variability(config_, parts_.communicator, parts_.variability, network_,
                             parts_.outputs.log);
  training_step.Announce(*parts_.outputs.log);
  parts_.training->Seek(schedule_.start);
  control_.StartTraining(schedule_);
  report_.StartTraining(schedule_, {parts_.training->samples(),
                                    parts_.evaluation ? parts_.evaluation->samples() : 0});
  variability.Start();
  while (result_.step < end && result_.ending == Ending::kCompleted) {
    control_.Enter(Activity::kTraining, result_.step);
    trace.Before(result_.step);
    profile.Before(result_.step);
    TrainingStep::Outcome outcome = RunStep(training_step);
    const bool is_last = outcome.asked.stop || result_.step + 1 == end;
    trace.After(result_.step, is_last);
    profile.After(result_.step, outcome.record.times.step, is_last);
    variability.After(result_.step - first, outcome.record.times);
    if (!outcome.warning.empty()) parts_.outputs.log->warn(outcome.warning);
    outcome.record.launch_step = result_.step - first;
    times_.Add(outcome.record.times);
    report_.Step(outcome.record);
    ++result_.step;
    if (outcome.asked.stop && result_.step < end) Stop();
    control_.Stepped(outcome.record);
    if (config_.compare_every > 0 && result_.step % config_.compare_every == 0) CompareRanks();

    if (!keeps_files) {
      if (result_.step == config_.warmup_steps) {
        times_.Reset();
        report_.EndWarmup();
      }
      continue;
    }
    if (!config_.dump_state.empty() && result_.step == config_.dump_state_step) {
      DumpState(training_step);
    }
    checkpoints_->Look();
    const bool is_due =
        config_.checkpoint_every > 0 && result_.step % config_.checkpoint_every == 0;
    const bool rests = outcome.asked.pause && !is_last && result_.ending == Ending::kCompleted;
    if (is_due || outcome.asked.save) {
      Save(is_last || rests ? Checkpoints::Wait::kForFile : Checkpoints::Wait::kForCopy);
    }
    if (rests) Rest();
  }
  variability.End();
  report_.EndTraining(times_);
  result_.profile = profile.lines();
}

TrainingStep::Outcome Trainer::RunStep(TrainingStep& training_step) {
  try {
    return training_step.Run(result_.step, schedule_.LearningRate(result_.step), control_.Asked());
  } catch (const std::exception& error) {
    parts_.failed(error);
    throw;
  }
}

void Trainer::Stop() {
  result_.ending = Ending::kStopped;
  control_.Stop();
}

void Trainer::Rest() {
  checkpoints_->Finish();
  const bool stops = control_.Rest(result_.step, [this] {
    if (saved_step_ != result_.step) Save(Checkpoints::Wait::kForFile);
    control_.Obeyed();
  });
  if (stops) Stop();
}

void Trainer::CompareRanks() {
  if (!comparison_ || compared_step_ == result_.step) return;
  comparison_->Require(result_.step, *stream_);
  compared_step_ = result_.step;
}

// What is saved was compared, whenever that was due next.
void Trainer::Save(Checkpoints::Wait wait) {
  CompareRanks();
  control_.Enter(Activity::kCheckpoint, result_.step);
  checkpoints_->Save(schedule_.PositionAt(result_.step), loss_scale_, wait);
  saved_step_ = result_.step;
}

void Trainer::DumpState(const TrainingStep& training_step) {
  if (parts_.communicator.rank() != 0) return;
  WriteTensorFile(
      config_.dump_state,
      StateForDump(network_, training_step.gradients(), training_step.gradient_scale(), *stream_),
      {{"step", std::to_string(result_.step)}}, "another --dump_state");
  parts_.outputs.log->info("state after step {} written: {}", result_.step,
                           config_.dump_state.string());
}

void Trainer::RunEvaluation() {
  control_.Enter(Activity::kEvaluation, result_.step);
  report_.StartEvaluation(parts_.evaluation->samples());
  result_.evaluation =
      Evaluate({parts_.backend, network_, device_batch_, parts_.communicator, *stream_},
               *parts_.evaluation, [this] { return control_.Asked().stop; });
  if (result_.evaluation) {
    report_.EndEvaluation(result_.step, *result_.evaluation);
  } else {
    Stop();
  }
  control_.Obeyed();  // all was saved before
}

// The weights of a file or of a run, for modes that do not train.
void Trainer::LoadWeights() {
  if (!config_.init_from.empty()) {
    InitializeFromFile(snapshot_parts());
  } else if (const auto position = RestoreSnapshot(snapshot_parts(), loss_scale_, std::nullopt)) {
    result_.step = position->step;
  } else {
    throw Error(EX_USAGE, "there are no weights: no checkpoint in '" + config_.model_dir.string() +
                              "'; give the --model_dir of a run, or a file by --init_from");
  }
}

TrainResult Trainer::EvaluateSaved() {
  LoadWeights();
  RunEvaluation();
  return result_;
}

TrainResult Trainer::Predict() {
  LoadWeights();
  result_.predictions =
      PredictImage(config_.to_predict, parts_.backend, network_, device_batch_, *stream_);
  return result_;
}

// The steps of a benchmark, warm-up included.
std::int64_t Trainer::BenchmarkSteps(const Source& source) {
  schedule_ =
      MakeSchedule(config_.schedule, source.samples(), config_.batch, parts_.communicator.size());
  const std::int64_t steps = schedule_.EndOfLaunch(0);
  if (steps <= config_.warmup_steps) {
    throw Error(EX_USAGE, fmt::format("a benchmark of {} steps has nothing left after {} steps of "
                                      "warm-up: give a larger --num_iter or a smaller "
                                      "--warmup_steps",
                                      steps, config_.warmup_steps));
  }
  return steps;
}

TrainResult Trainer::BenchmarkTraining() {
  BenchmarkSteps(*parts_.training);
  InitializeAfresh();
  TrainSteps();
  if (result_.ending == Ending::kCompleted) {
    result_.images_per_second = static_cast<double>(schedule_.global_batch) / times_.Median().step;
  }
  return result_;
}

// Of one forward pass, the batch being asked for and its result being there.
double Trainer::InferenceSeconds() {
  control_.Enter(Activity::kEvaluation, result_.step);
  const auto begun = std::chrono::steady_clock::now();
  HostBatch batch;
  if (!parts_.evaluation->Next(batch)) {
    parts_.evaluation->Seek({});
    DDL_CHECK(parts_.evaluation->Next(batch));
  }
  Infer(network_, device_batch_, batch, *stream_);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

TrainResult Trainer::BenchmarkInference() {
  const std::int64_t steps = BenchmarkSteps(*parts_.evaluation);
  InitializeAfresh();
  for (std::int64_t step = -config_.warmup_steps; step < steps - config_.warmup_steps; ++step) {
    if (parts_.stop_requested()) {
      result_.ending = Ending::kStopped;
      return result_;
    }
    StepTimes times;
    times.step = InferenceSeconds();
    if (step < 0) continue;  // warm-up
    times_.Add(times);
    ++result_.step;
  }
  const double median = times_.Median().step;
  result_.images_per_second = static_cast<double>(schedule_.global_batch) / median;
  report_.EndInferenceBenchmark(median, result_.step);
  return result_;
}

}  // namespace

NetworkSpec NetworkSpecOf(const TrainConfig& config) {
  return {config.architecture, config.batch,   config.height,
          config.width,        config.classes, static_cast<float>(config.label_smoothing)};
}

TrainResult RunTrainer(const TrainConfig& config, const TrainParts& parts) {
  Trainer trainer(config, parts);
  switch (config.mode) {
    case RunMode::kTrain:
    case RunMode::kTrainAndEvaluate:
      return trainer.Train();
    case RunMode::kEvaluate:
      return trainer.EvaluateSaved();
    case RunMode::kPredict:
      return trainer.Predict();
    case RunMode::kTrainingBenchmark:
      return trainer.BenchmarkTraining();
    case RunMode::kInferenceBenchmark:
      break;
  }
  return trainer.BenchmarkInference();
}

}  // namespace trainer
