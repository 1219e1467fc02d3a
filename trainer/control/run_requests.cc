// SPDX-License-Identifier: Apache-2.0

#include "trainer/control/run_requests.h"

#include <algorithm>
#include <cmath>
#include <system_error>
#include <utility>

namespace trainer {
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
  const PendingRequests pending =
      options_.control != nullptr ? options_.control->Look() : PendingRequests();
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
  if (!fs::exists(status)) return false;
  if (fs::is_regular_file(status) && fs::file_size(command.file, error) == 0 && !error) return true;
  options_.log->warn("{} is not an empty file, so it is left as it is and taken for no order",
                     command.file.string());
  command.is_looked_for = false;
  return false;
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
