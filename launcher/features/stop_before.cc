// SPDX-License-Identifier: Apache-2.0

#include "launcher/features/stop_before.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "launcher/base/error.h"
#include "launcher/cli/option_values.h"
#include "launcher/cli/user_program.h"
#include "launcher/slurm/slurm_job.h"

namespace launcher {
namespace {

// "N", "N:USR1" or "N:USR2", SIG in front of it or not; or as sbatch --signal has it: "USR1@N".
std::string SetStopBefore(Options& options, const std::string& value) {
  const std::size_t at = value.find('@');
  if (at != std::string::npos) {
    const std::string signal = value.substr(value.starts_with("B:") ? 2 : 0);
    return SetStopBefore(options, value.substr(at + 1) + ":" + signal.substr(0, signal.find('@')));
  }
  const std::size_t colon = value.find(':');
  std::string signal = colon == std::string::npos ? "USR1" : value.substr(colon + 1);
  if (signal.starts_with("SIG")) signal.erase(0, 3);
  if (signal != "USR1" && signal != "USR2") return "N, N:USR1, N:USR2 or USR1@N";
  options.stop_by_usr2 = signal == "USR2";
  return ParseCount(value.substr(0, colon), 1, &options.stop_before);
}

std::vector<OptionSpec> StopBeforeRows() {
  return {{.section = kHowSection,
           .names = {"stop-before"},
           .also = {"signal"},
           .argument = "N[:SIGNAL]",
           .unit = "seconds",
           .help = "send all ranks SIGNAL (USR1, or USR2) N seconds before the time of the Slurm "
                   "job ends, so that they can write a checkpoint and end with 75; needs no "
                   "#SBATCH --signal. Not for ddltraind, which stops in time by itself",
           .set = SetStopBefore}};
}

void MergeStopBefore(const Options& options, Settings* settings) {
  if (!options.stop_before) return;
  if (TrainerArguments(options.program)) {
    throw LaunchError(EX_USAGE,
                      "--stop-before is for other programs: ddltraind stops before the end of its "
                      "job by itself, in time for a checkpoint (its --stop_margin)");
  }
  settings->Show("stop_before",
                 std::to_string(*options.stop_before) + (options.stop_by_usr2 ? ":USR2" : ""),
                 true);
}

std::unique_ptr<JobWatcher> WatchStopBefore(const JobRun& run) {
  if (!run.options.stop_before) return nullptr;
  auto stop = StopBeforeTimeLimit(run.options, run.environment, run.planned.restart_count > 0);
  return stop ? std::make_unique<StopBefore>(*std::move(stop)) : nullptr;
}

StopBefore::Clock::duration Seconds(double seconds) {
  return std::chrono::duration_cast<StopBefore::Clock::duration>(
      std::chrono::duration<double>(seconds));
}

}  // namespace

const Feature kStopBefore = {StopBeforeRows, MergeStopBefore, WatchStopBefore};

std::optional<StopBeforeOptions> StopBeforeTimeLimit(const Options& options,
                                                     const Environment& environment,
                                                     bool is_restart) {
  const std::chrono::seconds margin(*options.stop_before);
  const std::string option = "--stop-before " + std::to_string(margin.count());
  const auto seconds = static_cast<double>(margin.count());
  const std::string number = SlurmJobNumber(environment);
  std::optional<double> left = SecondsToTimeLimit(environment, std::chrono::system_clock::now());
  // SLURM_JOB_END_TIME is that of the job's start; the limit may have been extended since.
  if (left && *left <= seconds && !number.empty()) {
    if (const auto job = QuerySlurmForJob(environment)) left = job->seconds_left;
  }
  if (!left && is_restart) return std::nullopt;
  if (!left) {
    throw LaunchError(EX_CONFIG,
                      option +
                          ": the end of this job is not known: neither SLURM_JOB_END_TIME nor "
                          "'scontrol show job' tells a time limit; write #SBATCH --time, or leave "
                          "the option out");
  }
  if (*left <= seconds && !is_restart) {
    throw LaunchError(EX_CONFIG, option + ": the job's time ends in " +
                                     std::to_string(std::max(0LL, static_cast<long long>(*left))) +
                                     " s already: give fewer seconds, or more #SBATCH --time");
  }
  StopBeforeOptions stop;
  stop.end = StopBefore::Clock::now() + Seconds(*left);
  stop.margin = margin;
  if (options.stop_by_usr2) stop.signal = SIGUSR2;
  stop.question = ShowJobCommand(environment);
  stop.environment = environment;
  stop.seconds_left = [number](const std::string& text) -> std::optional<double> {
    const std::optional<SlurmJob> job = ParseSlurmJob(text, number);
    if (!job) return std::nullopt;
    return job->seconds_left.value_or(std::numeric_limits<double>::infinity());
  };
  return stop;
}

Deadline StopBefore::deadline() const {
  if (question_ != nullptr) return answer_until_;
  if (!notify_at_ || has_queried_) return notify_at_;
  return *notify_at_ - kAhead;
}

void StopBefore::Poll(WatchedJob& job) {
  if (!IsTime(job.Now()) || !job.IsRunning() || job.IsStopRequested()) return;
  job.SendToRanks(options_.signal);
  has_notified_ = true;
  job.AddNote(std::string("ranks got ") + (options_.signal == SIGUSR2 ? "SIGUSR2 " : "SIGUSR1 ") +
              std::to_string(options_.margin.count() / 1000) +
              " s before the end of the job's time (--stop-before)");
}

// True only once.
bool StopBefore::IsTime(Clock::time_point now) {
  if (!notify_at_) return false;
  if (question_ != nullptr && (question_->HasEnded() || now >= answer_until_)) TakeAnswer();
  if (!notify_at_) return false;
  if (!has_queried_ && now >= *notify_at_ - kAhead) Ask(now);
  if (question_ != nullptr || now < *notify_at_) return false;
  notify_at_.reset();
  return true;
}

void StopBefore::Ask(Clock::time_point now) {
  has_queried_ = true;
  queried_at_ = now;
  answer_until_ = std::max(*notify_at_, now + kAhead);
  if (options_.question.empty()) return;
  try {
    question_ = std::make_unique<CommandOutput>(options_.question, options_.environment);
  } catch (const LaunchError&) {
    // The machine may have no process left; the end that was known counts.
  }
}

void StopBefore::TakeAnswer() {
  const bool is_answer = question_->Wait(std::chrono::milliseconds(0));
  const auto left = is_answer ? options_.seconds_left(question_->text()) : std::nullopt;
  question_.reset();
  if (!left) return;
  if (std::isinf(*left)) {
    end_.reset();
    notify_at_.reset();
    return;
  }
  // Slurm has counted since it was asked at the earliest.
  const auto end = queried_at_ + Seconds(*left);
  if (end <= *end_ + kSlack) return;
  end_ = end;
  notify_at_ = end - options_.margin;
  has_queried_ = false;
}

void StopBefore::AddTo(JobStatus* status) const {
  status->ends.reset();
  if (!end_) return;
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  const std::chrono::duration<double> left = *end_ - Clock::now();
  status->ends = (now + left).count();
}

void StopBefore::OnEnd(const WatchedJob& /*job*/, JobResult* result) {
  result->notified_of_end = has_notified_;
}

}  // namespace launcher
