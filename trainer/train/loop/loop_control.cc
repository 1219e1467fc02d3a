// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/loop/loop_control.h"

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/train/loop/trainer.h"

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

}  // namespace trainer
