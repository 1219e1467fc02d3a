// SPDX-License-Identifier: Apache-2.0

#include "trainer/control/run_control.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

namespace trainer {

RunControl::RunControl(RunIdentity identity, std::int64_t display_every,
                       std::function<double()> seconds)
    : identity_(std::move(identity)), seconds_(std::move(seconds)), display_every_(display_every) {}

double RunControl::SteadySeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void RunControl::StartTraining(const TrainingExtent& plan) {
  const std::lock_guard lock(mutex_);
  plan_ = plan;
  last_.steps = plan.step;
  last_.epoch = plan.epoch;
}

void RunControl::OnEvent(RunEvent event) {
  const std::lock_guard lock(mutex_);
  const std::optional<RunState> next = StateAfter(state_, event);
  if (!next) return;
  state_ = *next;
  if (event == RunEvent::kStep && !counted_until_) counted_until_ = seconds_();
  if (event == RunEvent::kPause) counted_until_.reset();
}

void RunControl::OnStepEnd(const Step& step) {
  const std::lock_guard lock(mutex_);
  last_ = step;
  has_step_ = true;
  recent_.Add(step.times);
  ++steps_;
  const double now = seconds_();
  if (counted_until_) active_seconds_ += now - *counted_until_;
  counted_until_ = now;
}

void RunControl::SetHosts(std::vector<std::string> hosts) {
  const std::lock_guard lock(mutex_);
  loads_.SetHosts(std::move(hosts));
}

void RunControl::OnRankMetrics(std::span<const double> busy_seconds,
                               std::span<const RankMetrics> said) {
  const std::lock_guard lock(mutex_);
  loads_.Add(busy_seconds, said);
}

void RunControl::OnCheckpointSaved(std::int64_t step) {
  const std::lock_guard lock(mutex_);
  checkpoint_step_ = step;
}

PendingRequests RunControl::Look() {
  const std::lock_guard lock(mutex_);
  if (save_ == PendingRequest::kNew) save_ = PendingRequest::kSeen;
  if (evaluate_ == PendingRequest::kNew) evaluate_ = PendingRequest::kSeen;
  return {.stop = stop_,
          .save = save_ == PendingRequest::kSeen,
          .evaluate = evaluate_ == PendingRequest::kSeen,
          .pause = pause_};
}

void RunControl::AckCheckpoint() {
  const std::lock_guard lock(mutex_);
  if (save_ == PendingRequest::kSeen) save_ = PendingRequest::kNone;
}

void RunControl::Evaluated() {
  const std::lock_guard lock(mutex_);
  if (evaluate_ == PendingRequest::kSeen) evaluate_ = PendingRequest::kNone;
}

std::int64_t RunControl::display_every() const {
  const std::lock_guard lock(mutex_);
  return display_every_;
}

void RunControl::OnStacks(std::function<std::uint64_t()> ask) {
  const std::lock_guard lock(mutex_);
  ask_for_stacks_ = std::move(ask);
}

ControlAnswer RunControl::Take(const ControlRequest& request) {
  const std::lock_guard lock(mutex_);
  ControlAnswer answer;
  if (request.command) Obey(request, answer);
  answer.status = StatusNow();
  return answer;
}

void RunControl::Obey(const ControlRequest& request, ControlAnswer& answer) {
  const ControlCommand command = *request.command;
  const auto reject = [&](std::string why) { answer.rejection = std::move(why); };
  if (!Takes(state_, command)) {
    return reject(fmt::format("{} is not possible while the training is in the state {}",
                              NameOf(command), NameOf(state_)));
  }
  switch (command) {
    case ControlCommand::kPause:
      pause_ = true;
      break;
    case ControlCommand::kResume:
      if (!pause_) return reject(fmt::format("it is not paused: its state is {}", NameOf(state_)));
      pause_ = false;
      break;
    case ControlCommand::kCheckpoint:
      save_ = PendingRequest::kNew;
      break;
    case ControlCommand::kEvaluate:
      if (!plan_.can_evaluate) {
        return reject("it has no images to evaluate with: --mode=train_and_evaluate has");
      }
      evaluate_ = PendingRequest::kNew;
      break;
    case ControlCommand::kStop:
      stop_ = true;
      break;
    case ControlCommand::kSet:
      display_every_ = request.display_every;
      break;
    case ControlCommand::kStacks:
      if (!ask_for_stacks_) {
        return reject("its ranks cannot be asked for their stacks: its log says why");
      }
      answer.stack_dump_command = ask_for_stacks_();
      break;
  }
}

RunStatus RunControl::status() const {
  const std::lock_guard lock(mutex_);
  return StatusNow();
}

RunStatus RunControl::StatusNow() const {
  RunStatus status;
  status.state = state_;
  status.step = last_.steps;
  status.steps = plan_.steps;
  status.epoch = last_.epoch;
  status.epochs = plan_.epochs;
  if (has_step_) {
    status.loss = last_.loss;
    status.times = recent_.Mean();
    status.images_per_second = static_cast<double>(plan_.global_batch) / status.times.step;
    const auto left = static_cast<double>(plan_.steps - last_.steps);
    status.eta_seconds = left * active_seconds_ / static_cast<double>(steps_);
  }
  status.median_busy_seconds = loads_.Median();
  status.loads = loads_.Slowest();
  status.checkpoint_step = checkpoint_step_;
  status.display_every = display_every_;
  if (!IsEnd(state_)) {
    if (pause_ && state_ != RunState::kPaused) status.requested.push_back(ControlCommand::kPause);
    if (!pause_ && state_ == RunState::kPaused) status.requested.push_back(ControlCommand::kResume);
    if (save_ != PendingRequest::kNone) status.requested.push_back(ControlCommand::kCheckpoint);
    if (evaluate_ != PendingRequest::kNone) status.requested.push_back(ControlCommand::kEvaluate);
    if (stop_) status.requested.push_back(ControlCommand::kStop);
  }
  status.identity = identity_;
  return status;
}

}  // namespace trainer
