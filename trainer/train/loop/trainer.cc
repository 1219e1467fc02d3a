// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/loop/trainer.h"

#include <fmt/format.h>

#include <array>
#include <functional>
#include <memory>
#include <string>

#include "trainer/core/error.h"
#include "trainer/train/loop/training_session.h"
#include "trainer/train/monitor/rank_comparison.h"
#include "trainer/train/state/checkpoints.h"
#include "trainer/train/state/initial_weights.h"
#include "trainer/train/state/network_state.h"
#include "trainer/train/state/snapshot.h"
#include "trainer/train/step/queue_ahead.h"
#include "trainer/train/step/step_trace.h"
#include "trainer/train/step/training_step.h"

namespace trainer {
namespace {

class Trainer {
 public:
  explicit Trainer(Launch& launch) : launch_(launch) {
    if (config_.paranoid == 0) return;
    if (deps_.communicator.size() > 1) {
      comparison_.emplace(deps_.backend, network_, deps_.communicator, deps_.host);
    } else {
      deps_.outputs.log->warn("--paranoid compares ranks: one rank has none to be compared with");
    }
  }

  TrainResult Train();
  TrainResult BenchmarkTraining();

 private:
  Position FirstPosition();
  void LogIfComplete();
  // To the end of this launch, from where the schedule starts.
  void TrainSteps();
  // The same; what has gone wrong on a rank while its weights are sound ends it with a checkpoint.
  void TrainUntilFault();
  // Does what only this rank does.  Where that fails, training stops after the next step, with a
  // checkpoint, and the failure is thrown then.
  void TryAlone(const std::function<void()>& work);
  void ThrowOwnFault() const;
  Requests Requested();
  // `end`: of the launch.
  TrainingStep::Outcome RunStep(TrainingStep& training_step, std::int64_t end);
  // From result_.step, which has found that.
  void RollBack(const std::string& found);
  void CompareRanks();
  void Save(Checkpoints::Wait wait, std::optional<double> top1 = {});
  void FinishSaving();
  std::optional<EvaluationResult> FindTop1();
  void EvaluateNow(Checkpoints::Wait wait);
  void Evaluated(const EvaluationResult& found, Checkpoints::Wait wait);
  void Stop();
  void Rest();
  void DumpState(const TrainingStep& training_step);

  Launch& launch_;
  // Of launch_.
  const TrainConfig& config_ = launch_.config;
  const TrainerDeps& deps_ = launch_.deps;
  Network& network_ = launch_.network;
  Stream& stream_ = *launch_.stream;
  LossScale& loss_scale_ = launch_.loss_scale;
  LogDispatcher& log_ = launch_.report;
  LoopControl& control_ = launch_.control;

  Schedule schedule_;
  StepTimer times_;
  TrainResult result_;
  std::int64_t saved_step_ = -1;
  std::optional<RankComparison> comparison_;
  std::int64_t compared_step_ = -1;
  std::optional<Checkpoints> checkpoints_;  // of a training that keeps its weights
  std::optional<Evaluations> evaluations_;  // of one that evaluates
  std::int64_t evaluated_step_ = -1;        // the last one, in this launch
  bool has_reached_target_ = false;         // an evaluation ends the training
  std::unique_ptr<const Error> own_fault_;  // of TryAlone, to be thrown
  Rollbacks rollbacks_;
};

TrainResult Trainer::Train() {
  schedule_ = MakeSchedule(config_.schedule, deps_.training->samples(),
                           GlobalBatchOf(config_, deps_.communicator.size()));
  schedule_ = schedule_.From(FirstPosition());
  checkpoints_.emplace(CheckpointManagerDeps{launch_.snapshot_deps(), deps_.backend,
                                             deps_.training->samples(), deps_.requests,
                                             deps_.checkpoint_hook});
  if (config_.mode == RunMode::kTrainAndEvaluate) {
    evaluations_.emplace(config_, deps_.communicator, schedule_);
    if (!evaluations_->note().empty()) deps_.outputs.log->warn("{}", evaluations_->note());
    has_reached_target_ = evaluations_->ReachesTarget(evaluations_->first_top1());
  }
  result_.step = schedule_.start.step;
  control_.StartTraining(schedule_);  // also of a run that is complete: it has its steps
  if (has_reached_target_) {
    log_.ReachedTarget(result_.step, evaluations_->first_top1());
  } else {
    LogIfComplete();
    TrainUntilFault();
  }
  if (saved_step_ != result_.step) Save(Checkpoints::Wait::kForFile);
  FinishSaving();
  ThrowOwnFault();
  control_.AckCheckpoint();  // all that was asked for and is not done is needless now

  // What was asked for is done, be it the whole training or as much of it as --run_iter says.
  const bool is_done = result_.ending == Ending::kCompleted;
  if (is_done && !config_.export_dir.empty()) {
    ExportModel(launch_.snapshot_deps(), ExportFile(config_));
  }
  if (is_done && evaluations_ && !has_reached_target_ && evaluated_step_ != result_.step) {
    EvaluateNow(Checkpoints::Wait::kForFile);
    control_.AckCheckpoint();  // all was saved before
  }
  log_.EndRun(result_.evaluation.has_value());
  return result_;
}

void Trainer::TrainUntilFault() {
  try {
    TrainSteps();
  } catch (const RankFault& fault) {
    // Of a benchmark, and of weights that nothing was learnt into yet, there is nothing to keep.
    const bool is_worth_it = checkpoints_ && result_.step > 0 && saved_step_ != result_.step;
    std::string end;
    try {
      if (is_worth_it) Save(Checkpoints::Wait::kForFile);
      if (checkpoints_) FinishSaving();
      if (is_worth_it) end = fmt::format("; the weights of step {} were saved", result_.step);
    } catch (const Error& error) {
      end = fmt::format("; the weights of step {} could not be saved: {}", result_.step,
                        error.what());
    }
    throw RankFault(fault.exit_code(), fault.what() + end, fault.whose());
  }
}

void Trainer::TryAlone(const std::function<void()>& work) {
  try {
    work();
  } catch (const NotFinite&) {
    throw;
  } catch (const Error& error) {
    if (own_fault_ || config_.mode == RunMode::kTrainingBenchmark) throw;
    own_fault_ = std::make_unique<Error>(error);
  }
}

void Trainer::ThrowOwnFault() const {
  if (!own_fault_) return;
  throw Error(own_fault_->exit_code(), fmt::format("{}; the weights of step {} were saved",
                                                   own_fault_->what(), result_.step));
}

Requests Trainer::Requested() {
  Requests requested = control_.Requested();
  requested.stop = requested.stop || own_fault_ != nullptr;
  return requested;
}

void Trainer::LogIfComplete() {
  const bool is_complete = result_.step > 0 && result_.step >= schedule_.total_steps;
  if (!is_complete || deps_.communicator.rank() != 0) return;
  deps_.outputs.log->info("training is complete: step {} of {}; a larger --num_iter trains on",
                          result_.step, schedule_.total_steps);
}

// The weights, and from where they are to go on.
Position Trainer::FirstPosition() {
  if (config_.resume) {
    const TrainingAhead ahead = {schedule_, deps_.training->samples()};
    if (const auto position = RestoreSnapshot(launch_.snapshot_deps(), loss_scale_, ahead)) {
      saved_step_ = position->step;
      control_.Found(saved_step_);
      if (deps_.communicator.rank() == 0 && !config_.init_from.empty()) {
        deps_.outputs.log->info("--init_from is not read: the run has a checkpoint of its own");
      }
      return *position;
    }
  } else {
    RejectUsedDirectory(launch_.snapshot_deps());
  }
  if (config_.init_from.empty() || config_.new_head) launch_.InitializeAfresh();
  if (!config_.init_from.empty()) InitializeFromFile(launch_.snapshot_deps());
  return {};
}

void Trainer::TrainSteps() {
  const bool keeps_files = config_.mode != RunMode::kTrainingBenchmark;
  const std::int64_t first = schedule_.start.step;
  std::int64_t end = schedule_.EndOfLaunch(first);
  if (deps_.communicator.rank() == 0 && !config_.dump_state.empty() &&
      (config_.dump_state_step <= first || config_.dump_state_step > end)) {
    deps_.outputs.log->warn(
        "--dump_state writes nothing: step {} is not among the steps {} to {} of this launch",
        config_.dump_state_step, first + 1, end);
  }
  if (first >= end) return;

  TrainingStep training_step({.config = config_,
                              .backend = deps_.backend,
                              .network = network_,
                              .device_batch = launch_.device_batch,
                              .communicator = deps_.communicator,
                              .stream = stream_,
                              .loss_scale = loss_scale_,
                              .source = *deps_.training,
                              .end = end,
                              .spans = deps_.spans,
                              .device_state = deps_.device_state,
                              .replay_rank = {deps_.host, deps_.identify_device}});
  StepTrace trace(config_, deps_.communicator, deps_.spans, deps_.outputs.log);
  StepProfile profile(config_, deps_.profile, network_, deps_.outputs.log);
  VariabilityLog variability(config_, deps_.communicator, deps_.variability, network_,
                             deps_.outputs.log);
  const std::array<StepObserver*, 3> watchers = {&trace, &profile, &variability};
  for (StepObserver* watcher : watchers) watcher->Start(first, end);
  training_step.Announce(*deps_.outputs.log);
  deps_.training->Seek(training_step.FirstBatch(schedule_.start));
  log_.StartTraining(
      schedule_, {deps_.training->samples(), deps_.evaluation ? deps_.evaluation->samples() : 0});
  const bool has_no_rollback_target = keeps_files && saved_step_ < 0;
  if (config_.on_nan == OnNan::kRollback && has_no_rollback_target) {
    Save(Checkpoints::Wait::kForCopy);
  }
  if (evaluations_ && evaluations_->IsOverdue()) {
    EvaluateNow(Checkpoints::Wait::kForFile);
  }
  for (StepObserver* watcher : watchers) watcher->LeaveOut();
  const auto continues = [this] {
    return result_.ending == Ending::kCompleted && !has_reached_target_;
  };
  std::int64_t launch_step = 0;
  while (result_.step < end && continues()) {
    control_.Enter(Activity::kTraining, result_.step);
    for (StepObserver* watcher : watchers) watcher->Before(result_.step);
    TrainingStep::Outcome outcome = RunStep(training_step, end);
    if (!outcome.warning.empty()) deps_.outputs.log->warn(outcome.warning);
    if (!outcome.found.empty()) {
      RollBack(outcome.found);
      end = schedule_.EndOfLaunch(first);
      training_step.Restart(end);
      deps_.training->Seek(training_step.FirstBatch(schedule_.start));
      for (StepObserver* watcher : watchers) watcher->RolledBack();
      continue;
    }
    const bool is_last = outcome.requested.stop || result_.step + 1 == end;
    outcome.record.launch_step = launch_step++;
    for (StepObserver* watcher : watchers) watcher->After(outcome.record);
    times_.Add(outcome.record.times);
    log_.Step(outcome.record);
    ++result_.step;
    if (outcome.requested.stop && result_.step < end) Stop();
    control_.OnStepEnd(outcome.record);
    if (IsTurn(result_.step, config_.paranoid)) CompareRanks();

    if (!keeps_files) {
      if (result_.step == config_.warmup_steps) {
        times_.Reset();
        log_.EndWarmup();
      }
      continue;
    }
    if (!config_.dump_state.empty() && result_.step == config_.dump_state_step) {
      TryAlone([&] { DumpState(training_step); });
    }
    TryAlone([&] { checkpoints_->Look(); });
    const bool is_due = IsTurn(result_.step, config_.checkpoint_every);
    const Checkpoints::Wait wait =
        is_last ? Checkpoints::Wait::kForFile : Checkpoints::Wait::kForCopy;
    const bool is_evaluated =
        evaluations_ && (outcome.requested.evaluate || evaluations_->IsDue(result_.step));
    // What is saved or evaluated is of this step, and of no later one.
    const bool is_looked_at = is_last || is_due || is_evaluated || outcome.requested.any();
    DDL_CHECK(!is_looked_at || !training_step.has_next());
    if (is_due || outcome.requested.save) Save(wait);
    if (is_evaluated && !outcome.requested.stop && result_.step < schedule_.total_steps) {
      EvaluateNow(wait);
      for (StepObserver* watcher : watchers) watcher->LeaveOut();
    }
    if (outcome.requested.pause && !is_last && continues()) Rest();
  }
  for (StepObserver* watcher : watchers) watcher->End();
  log_.EndTraining(times_);
  result_.profile = profile.lines();
}

TrainingStep::Outcome Trainer::RunStep(TrainingStep& training_step, std::int64_t end) {
  const std::int64_t next = result_.step + 1;
  std::optional<double> next_rate;
  if (!IsLookedAt(next, end, config_, schedule_)) next_rate = schedule_.LearningRate(next);
  try {
    return training_step.Run(result_.step, schedule_.LearningRate(result_.step), Requested(),
                             next_rate);
  } catch (const RankFault&) {
    throw;  // all ranks are here, and no sum is under way
  } catch (const std::exception& error) {
    training_step.ResetCapture();
    deps_.failed(error);
    throw;
  }
}

void Trainer::RollBack(const std::string& found) {
  DDL_CHECK(checkpoints_.has_value());
  const std::int64_t bad_step = result_.step;
  control_.Enter(Activity::kCheckpoint, bad_step);
  checkpoints_->FinishForRollback();
  loss_scale_ = launch_.FirstLossScale();  // where that of the checkpoint is of another precision
  const auto from = RestoreSnapshot(
      launch_.snapshot_deps(), loss_scale_,
      TrainingAhead{
          .schedule = schedule_, .samples = deps_.training->samples(), .is_rollback = true});
  if (!from) {
    throw Error(EX_SOFTWARE, found +
                                 ": training has diverged, and no checkpoint is left to roll "
                                 "back to in " +
                                 ModelDirectory(config_).string());
  }
  const std::int64_t behind = schedule_.PositionAt(bad_step + 1).sample;
  schedule_ = schedule_.From(rollbacks_.Resume(*from, behind, found));
  result_.step = saved_step_ = from->step;
  compared_step_ = -1;
  if (evaluations_) evaluations_->Resume(schedule_);
  control_.Found(from->step);
  control_.StartTraining(schedule_);
  log_.RolledBack(found, *from, bad_step, schedule_, rollbacks_.in_a_row());
}

void Trainer::Stop() {
  result_.ending = Ending::kStopped;
  control_.Stop();
}

void Trainer::Rest() {
  FinishSaving();
  const bool stops = control_.Rest(result_.step, [this] {
    if (saved_step_ != result_.step) Save(Checkpoints::Wait::kForFile);
    control_.AckCheckpoint();
  });
  if (stops) Stop();
}

void Trainer::CompareRanks() {
  if (!comparison_ || compared_step_ == result_.step) return;
  comparison_->Require(result_.step, stream_);
  compared_step_ = result_.step;
}

// What an evaluation of the weights at hand finds; nothing where it is broken off, or left out.
std::optional<EvaluationResult> Trainer::FindTop1() {
  try {
    auto found = launch_.RunEvaluation(result_.step);
    if (!found) Stop();
    return found;
  } catch (const NotFinite& error) {
    // Of NaN weights: the next step finds that, and goes back to a checkpoint.
    const bool rolls_back =
        config_.on_nan == OnNan::kRollback && result_.step < schedule_.total_steps;
    if (!rolls_back) throw;
    if (deps_.communicator.rank() == 0) deps_.outputs.log->warn("{}", error.what());
  }
  return std::nullopt;
}

// Evaluates the weights at hand, and keeps them if they are the best so far or good enough.
void Trainer::EvaluateNow(Checkpoints::Wait wait) {
  if (const auto found = FindTop1()) Evaluated(*found, wait);
  control_.Evaluated();
}

void Trainer::Evaluated(const EvaluationResult& found, Checkpoints::Wait wait) {
  const bool is_end = result_.step >= schedule_.total_steps;
  const bool is_best = evaluations_->Add(found.top1);
  evaluated_step_ = result_.step;
  has_reached_target_ = evaluations_->ReachesTarget(found.top1);
  if (saved_step_ == result_.step) {
    control_.Enter(Activity::kCheckpoint, result_.step);
    checkpoints_->NoteTop1(result_.step, found.top1);
  } else if (is_best || has_reached_target_) {
    Save(has_reached_target_ ? Checkpoints::Wait::kForFile : wait, found.top1);
  }
  if (is_best && (config_.eval_every > 0 || !is_end)) log_.FoundBest(result_.step, found.top1);
  if (has_reached_target_ && !is_end) log_.ReachedTarget(result_.step, found.top1);
  if (has_reached_target_ || is_end) result_.evaluation = found;
}

// What is saved was compared, whenever that was due next.
void Trainer::Save(Checkpoints::Wait wait, std::optional<double> top1) {
  CompareRanks();
  control_.Enter(Activity::kCheckpoint, result_.step);
  checkpoints_->Save(schedule_.PositionAt(result_.step), loss_scale_, wait, top1);
  saved_step_ = result_.step;
}

// What was saved is durable on return, or was an error, and no rank has gone on meanwhile.
void Trainer::FinishSaving() {
  control_.Enter(Activity::kCheckpoint, result_.step);
  checkpoints_->Finish();
}

void Trainer::DumpState(const TrainingStep& training_step) {
  if (deps_.communicator.rank() != 0) return;
  WriteTensorFile(
      config_.dump_state,
      StateForDump(network_, training_step.gradients(), training_step.gradient_scale(), stream_),
      {{"step", std::to_string(result_.step)}}, "another --dump_state");
  deps_.outputs.log->info("state after step {} written: {}", result_.step,
                          config_.dump_state.string());
}

TrainResult Trainer::BenchmarkTraining() {
  schedule_ = BenchmarkSchedule(launch_, *deps_.training);
  launch_.InitializeAfresh();
  TrainSteps();
  if (result_.ending == Ending::kCompleted) {
    result_.images_per_second = static_cast<double>(schedule_.global_batch) / times_.Median().step;
  }
  return result_;
}

}  // namespace

TrainResult RunTrainer(const TrainConfig& config, const TrainerDeps& deps) {
  Launch launch(config, deps);
  switch (config.mode) {
    case RunMode::kTrain:
    case RunMode::kTrainAndEvaluate:
      return Trainer(launch).Train();
    case RunMode::kEvaluate:
      return EvaluateSaved(launch);
    case RunMode::kPredict:
      return PredictSaved(launch);
    case RunMode::kTrainingBenchmark:
      return Trainer(launch).BenchmarkTraining();
    case RunMode::kInferenceBenchmark:
      break;
  }
  return BenchmarkInference(launch);
}

}  // namespace trainer
