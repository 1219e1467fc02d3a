// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/loop/training_session.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/checkpoint/reader.h"
#include "trainer/core/error.h"
#include "trainer/data/images/image_files.h"
#include "trainer/model/network.h"
#include "trainer/telemetry/meters/step_timer.h"
#include "trainer/train/loop/trainer.h"
#include "trainer/train/state/initial_weights.h"
#include "trainer/train/state/network_state.h"
#include "trainer/train/step/gradients.h"
#include "trainer/train/step/metrics.h"

namespace trainer {
namespace {

std::optional<RunEvent> EventOf(Activity activity) {
  switch (activity) {
    case Activity::kTraining:
      return RunEvent::kStep;
    case Activity::kCheckpoint:
      return RunEvent::kCheckpoint;
    case Activity::kEvaluation:
      return RunEvent::kEvaluation;
    case Activity::kPause:
      return RunEvent::kPause;
    case Activity::kSetUp:
      break;
  }
  return std::nullopt;
}

}  // namespace

LoopControl::LoopControl(const TrainerDeps& deps, LogDispatcher& report)
    : deps_(deps),
      log_(report),
      control_(deps.requests != nullptr ? deps.requests->control() : nullptr),
      stragglers_({deps.communicator, deps.outputs.log, deps.host, deps.describe_device}),
      links_(deps.communicator, deps.outputs.log) {}

Requests LoopControl::Requested() {
  Requests requested;
  if (deps_.requests != nullptr) requested = deps_.requests->Look();
  requested.stop = deps_.stop_requested() || requested.stop;
  return requested;
}

void LoopControl::StartTraining(const Schedule& schedule) {
  schedule_ = schedule;
  std::vector<std::string> hosts = GatherTexts(deps_.communicator, deps_.host);
  links_.Start(hosts);
  if (control_ == nullptr) return;
  control_->SetHosts(std::move(hosts));
  const std::int64_t step = schedule.start.step;
  control_->StartTraining(
      {.step = step,
       .epoch = schedule.EpochOf(step),
       .steps = schedule.total_steps,
       .epochs = schedule.iter_unit == IterationUnit::kEpoch ? schedule.epochs : 0,
       .global_batch = schedule.global_batch,
       .can_evaluate = deps_.evaluation != nullptr});
}

void LoopControl::Enter(Activity activity, std::int64_t step) {
  deps_.entered(activity, step);
  if (const auto event = EventOf(activity)) Tell(*event);
  if (control_ != nullptr) log_.DisplayEvery(control_->display_every());
}

void LoopControl::OnStepEnd(const StepResult& record) {
  stragglers_.After(record.rank_seconds, record.times);
  links_.After(record.rank_seconds, record.times);
  if (deps_.requests != nullptr) deps_.requests->StepTook(record.times.step);
  if (control_ == nullptr) return;
  control_->OnRankMetrics(record.rank_seconds, record.rank_metrics_exchange);
  const std::int64_t steps = record.step + 1;
  control_->OnStepEnd({.steps = steps,
                       .epoch = schedule_.EpochOf(steps),
                       .loss = record.total_loss(),
                       .times = record.times});
}

void LoopControl::Found(std::int64_t step) {
  if (control_ != nullptr) control_->OnCheckpointSaved(step);
}

void LoopControl::AckCheckpoint() {
  if (deps_.requests != nullptr) deps_.requests->AckCheckpoint();
}

void LoopControl::Evaluated() {
  if (control_ != nullptr) control_->Evaluated();
}

void LoopControl::Stop() { Tell(RunEvent::kStop); }

bool LoopControl::Rest(std::int64_t step, const std::function<void()>& save) {
  const auto begun = std::chrono::steady_clock::now();
  log_.Pause(step);
  Requests requested;
  do {
    Enter(Activity::kPause, step);
    deps_.rest();
    StepExchange own;
    own.requested = Requested();
    requested = Exchange(own, deps_.communicator).requested;
    if (requested.save && !requested.stop) save();
  } while (requested.pause && !requested.stop);
  const std::chrono::duration<double> paused = std::chrono::steady_clock::now() - begun;
  if (!requested.stop) log_.Resume(step, paused.count());
  return requested.stop;
}

void LoopControl::Tell(RunEvent event) {
  if (control_ != nullptr) control_->OnEvent(event);
}

namespace {

NetworkDefinition TakePlan(const TrainConfig& config, const TrainerDeps& deps) {
  if (deps.network != nullptr) return std::move(*deps.network);
  return DefineNetwork(deps.backend, NetworkSpecOf(config));
}

// For the MFU, whose peaks are those of 16 bits.
std::optional<double> FlopPerImage(const TrainConfig& config, const Backend& backend) {
  const bool is_known = config.arch == "resnet50" && config.image_size == 224 &&
                        backend.compute_type() != DType::kFloat32;
  return is_known ? std::optional(kResNet50Flop) : std::nullopt;
}

}  // namespace

Launch::Launch(const TrainConfig& train_config, const TrainerDeps& trainer_deps)
    : config(train_config),
      deps(trainer_deps),
      network(deps.backend, TakePlan(config, deps),
              GradientMemory(deps.backend, deps.communicator)),
      stream(deps.backend.MakeStream()),
      device_batch(deps.backend, network.spec()),
      loss_scale(FirstLossScale()),
      data(config.data),
      report(config, deps.communicator, deps.outputs, FlopPerImage(config, deps.backend)),
      control(deps, report) {
  if (config.mode == RunMode::kTrainAndEvaluate) {
    evaluation_batch.emplace(deps.backend, network.spec());
  }
  if (deps.communicator.size() > 1) deps.agree(WeightLayout(network, deps.backend, *stream));
}

LossScale Launch::FirstLossScale() const {
  if (deps.backend.compute_type() == DType::kFloat32) return LossScale::Static(1);
  return config.use_static_loss_scaling ? LossScale::Static(config.loss_scale)
                                        : LossScale::Dynamic(config.loss_scale);
}

SnapshotDeps Launch::snapshot_deps() {
  return {config,  network,          deps.communicator,
          *stream, deps.outputs.log, deps.backend.compute_type(),
          &data};
}

// Rank 0's values count: logarithms and square roots of other processors and C libraries may differ
// in the last bit, and what starts apart stays apart.
void Launch::InitializeAfresh() {
  if (deps.communicator.rank() == 0) {
    Initialize(network, {config.seed, config.weight_init, config.zero_init_residual}, *stream);
  }
  BroadcastPart(network, Network::Part::kValue, deps.communicator, *stream);
  network.InitEma(*stream);
}

std::optional<EvaluationResult> Launch::RunEvaluation(std::int64_t step) {
  control.Enter(Activity::kEvaluation, step);
  report.StartEvaluation(step, deps.evaluation->samples());
  DeviceBatch& batch = evaluation_batch ? *evaluation_batch : device_batch;
  std::optional<EvaluationResult> result;
  SwapInEma(network, *stream, [&] {
    result = Evaluate({deps.backend, network, batch, deps.communicator, *stream}, *deps.evaluation,
                      [this] { return control.Requested().stop; });
  });
  if (!result) return result;
  RequireNumbers(*result, IsTraining(config.mode));
  report.EndEvaluation(step, *result);
  return result;
}

bool Launch::IsToStop() const {
  StepExchange own;
  own.requested.stop = deps.stop_requested();
  return Exchange(own, deps.communicator).requested.stop;
}

namespace {

// Of one forward pass, the batch being asked for and its result being there.
double InferenceSeconds(Launch& launch, std::int64_t step) {
  launch.control.Enter(Activity::kEvaluation, step);
  const auto begun = std::chrono::steady_clock::now();
  DataLoader& source = *launch.deps.evaluation;
  HostBatch batch;
  if (!source.Next(batch)) {
    source.Seek({});
    DDL_CHECK(source.Next(batch));
  }
  Infer(launch.network, launch.device_batch, batch, *launch.stream);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

}  // namespace

Schedule BenchmarkSchedule(const Launch& launch, const DataLoader& source) {
  const TrainConfig& config = launch.config;
  const Schedule schedule = MakeSchedule(config.schedule, source.samples(),
                                         GlobalBatchOf(config, launch.deps.communicator.size()),
                                         IsTraining(config.mode) ? "training" : "validation");
  const std::int64_t steps = schedule.EndOfLaunch(0);
  if (steps <= config.warmup_steps) {
    throw Error(EX_USAGE, fmt::format("a benchmark of {} steps has nothing left after {} steps of "
                                      "warm-up: give a larger --num_iter or a smaller "
                                      "--warmup_steps",
                                      steps, config.warmup_steps));
  }
  return schedule;
}

TrainResult BenchmarkInference(Launch& launch) {
  const Schedule schedule = BenchmarkSchedule(launch, *launch.deps.evaluation);
  const std::int64_t warmup = launch.config.warmup_steps;
  const std::int64_t end = schedule.EndOfLaunch(0) - warmup;
  launch.InitializeAfresh();
  TrainResult result;
  StepTimer measured;
  for (std::int64_t step = -warmup; step < end; ++step) {
    if (launch.IsToStop()) {
      result.ending = Ending::kStopped;
      return result;
    }
    StepTimes times;
    times.step = InferenceSeconds(launch, result.step);
    if (step < 0) continue;  // warm-up
    measured.Add(times);
    ++result.step;
  }
  const double median = measured.Median().step;
  result.images_per_second = static_cast<double>(schedule.global_batch) / median;
  launch.report.EndInferenceBenchmark(median, result.step);
  return result;
}

namespace {

// Returns how many updates they have had, 0 where that is not known.
std::int64_t LoadWeights(Launch& launch) {
  const SnapshotDeps deps = launch.snapshot_deps();
  if (!launch.config.init_from.empty()) {
    InitializeFromFile(deps);
    return 0;
  }
  if (const auto position = RestoreSnapshot(deps, launch.loss_scale, std::nullopt)) {
    return position->step;
  }
  const std::filesystem::path directory = ModelDirectory(launch.config);
  const std::string misplaced = DescribeMisplaced(directory);
  throw Error(EX_USAGE,
              "there are no weights: no checkpoint in '" + directory.string() + "'; " +
                  (misplaced.empty() ? "give the --model_dir of a run, or a file by --init_from"
                                     : misplaced));
}

}  // namespace

TrainResult EvaluateSaved(Launch& launch) {
  TrainResult result;
  result.step = LoadWeights(launch);
  result.evaluation = launch.RunEvaluation(result.step);
  if (!result.evaluation) {
    result.ending = Ending::kStopped;
    launch.control.Stop();
  } else if (!launch.config.export_dir.empty()) {
    ExportModel(launch.snapshot_deps(), ExportFile(launch.config));
  }
  launch.control.AckCheckpoint();
  return result;
}

TrainResult PredictSaved(Launch& launch) {
  TrainResult result;
  result.step = LoadWeights(launch);
  for (const std::filesystem::path& file : FindImageFiles(launch.config.to_predict)) {
    if (launch.IsToStop()) {
      result.ending = Ending::kStopped;
      break;
    }
    result.predictions.push_back(PredictImage(file, launch.deps.backend, launch.network,
                                              launch.device_batch, *launch.stream));
  }
  return result;
}

}  // namespace trainer
