// SPDX-License-Identifier: Apache-2.0

#include "trainer/control/run_control.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <system_error>
#include <utility>

#include "support/file_owner.h"

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

Requests RunControl::Look() {
  const std::lock_guard lock(mutex_);
  if (save_ == PendingRequest::kNew) save_ = PendingRequest::kSeen;
  if (evaluate_ == PendingRequest::kNew) evaluate_ = PendingRequest::kSeen;
  return {.stop = stop_,
          .save = save_ == PendingRequest::kSeen,
          .pause = pause_,
          .evaluate = evaluate_ == PendingRequest::kSeen};
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

namespace {

void Remember(std::deque<double>& last, double seconds, std::size_t max) {
  last.push_back(seconds);
  if (last.size() > max) last.pop_front();
}

double Longest(const std::deque<double>& last) {
  return last.empty() ? 0 : *std::max_element(last.begin(), last.end());
}

}  // namespace

TimeLimit::TimeLimit(double start, double end, std::optional<double> margin)
    : end_(end), at_most_(kShare * (end - start)), margin_(margin) {}

void TimeLimit::StepTook(double seconds) { Remember(steps_, seconds, kSteps); }

void TimeLimit::CheckpointBegan() { is_writing_ = true; }

void TimeLimit::CheckpointTook(double seconds) {
  Remember(checkpoints_, seconds, kCheckpoints);
  is_writing_ = false;
}

double TimeLimit::margin() const {
  double of_checkpoint = std::min(kUnmeasured, at_most_);
  if (margin_) {
    of_checkpoint = *margin_;
  } else if (!checkpoints_.empty()) {
    const int checkpoints = is_writing_ ? 2 : 1;
    of_checkpoint = std::min(kSpare, at_most_) + checkpoints * kFactor * Longest(checkpoints_);
  }
  return of_checkpoint + Longest(steps_);
}

namespace {

namespace fs = std::filesystem;

constexpr double kWorthSaying = 10;  // seconds by which the margin has changed

TimePoint PointOf(double seconds) {
  return TimePoint(
      std::chrono::duration_cast<TimePoint::duration>(std::chrono::duration<double>(seconds)));
}

bool IsOfUs(const fs::path& file) {
  struct stat status {};
  return ::lstat(file.c_str(), &status) == 0 &&
         support::IsOfUserOrDirectoryOwner(status, file.c_str());
}

}  // namespace

RunRequests::RunRequests(RunRequestsOptions options) : options_(std::move(options)) {
  orders_[kStop].file = options_.directory / "stop";
  orders_[kSave].file = options_.directory / "checkpoint";
  for (Request& command : orders_) {
    if (!IsGiven(command)) continue;
    options_.log->warn("{} is from before the start: it is removed and not obeyed",
                       command.file.string());
    Remove(command);
  }
  if (options_.limit) LogStopMargin();
}

Requests RunRequests::Look() {
  const double now = InSeconds(options_.clock().time_since_epoch());
  // A clock that was set back is no reason not to look.
  if (std::abs(now - looked_) >= kSecondsBetweenLooks) LookAtFiles(now);
  const Requests pending = options_.control != nullptr ? options_.control->Look() : Requests();
  if (why_.empty() && pending.stop) why_ = "by ddlctl";
  if (why_.empty() && options_.limit && options_.limit->IsDue(now)) {
    why_ = "for the end of the job's time";
    options_.log->warn(
        "the job's time ends in {:.0f} s (SLURM_JOB_END_TIME): stopping, since a checkpoint and a "
        "step are given {:.0f} s (--stop_margin)",
        options_.limit->end() - now, options_.limit->margin());
  }
  const bool is_save_given = orders_[kSave].is_given && !orders_[kSave].is_begun;
  return {.stop = !why_.empty(),
          .save = is_save_given || pending.save,
          .pause = pending.pause,
          .evaluate = pending.evaluate};
}

void RunRequests::LookAtFiles(double now) {
  looked_ = now;
  if (options_.lock != nullptr) options_.lock->Renew();
  for (Request& command : orders_) command.is_given = command.is_given || IsGiven(command);
  if (why_.empty() && orders_[kStop].is_given) {
    why_ = "by the file " + orders_[kStop].file.string();
  }
}

void RunRequests::StepTook(double seconds) {
  if (options_.limit) options_.limit->StepTook(seconds);
}

void RunRequests::BeginSave() {
  if (options_.lock != nullptr) options_.lock->Renew();
  for (Request& command : orders_) command.is_begun = command.is_given;
  if (options_.control != nullptr) options_.control->AckCheckpoint();
  if (options_.limit) options_.limit->CheckpointBegan();
}

void RunRequests::OnCheckpointSaved(std::int64_t step, double seconds) {
  for (Request& command : orders_) {
    if (command.is_begun) Remove(command);
  }
  if (options_.control != nullptr) options_.control->OnCheckpointSaved(step);
  if (!options_.limit) return;
  options_.limit->CheckpointTook(seconds);
  if (std::abs(options_.limit->margin() - logged_margin_) >= kWorthSaying) LogStopMargin();
}

void RunRequests::AckCheckpoint() {
  for (Request& command : orders_) {
    if (command.is_given) Remove(command);
  }
  if (options_.control != nullptr) options_.control->AckCheckpoint();
}

bool RunRequests::IsGiven(Request& command) {
  if (!command.is_looked_for) return false;
  std::error_code error;
  const fs::file_status status = fs::symlink_status(command.file, error);
  if (!fs::exists(status)) {
    command.is_rejected = false;
    return false;
  }
  const char* problem = nullptr;
  if (!IsOfUs(command.file)) {
    problem = "is of another user: it is not obeyed";
  } else if (!fs::is_regular_file(status) || fs::file_size(command.file, error) != 0 || error) {
    problem = "is not an empty file, so it is left as it is and taken for no order";
  }
  if (problem != nullptr && !command.is_rejected) {
    options_.log->warn("{} {}", command.file.string(), problem);
  }
  command.is_rejected = problem != nullptr;
  return problem == nullptr;
}

// One that cannot be removed would be obeyed again and again.
void RunRequests::Remove(Request& command) {
  command.is_given = command.is_begun = false;
  std::error_code error;
  fs::remove(command.file, error);
  if (!error) return;
  options_.log->warn("cannot remove {}: {}; it is not looked for any more", command.file.string(),
                     error.message());
  command.is_looked_for = false;
}

void RunRequests::LogStopMargin() {
  logged_margin_ = options_.limit->margin();
  options_.log->info(
      "the job's time ends at {} (SLURM_JOB_END_TIME): training stops with a checkpoint at {}, "
      "{:.0f} s before (--stop_margin)",
      IsoTime(PointOf(options_.limit->end())),
      IsoTime(PointOf(options_.limit->end() - logged_margin_)), logged_margin_);
}

}  // namespace trainer
