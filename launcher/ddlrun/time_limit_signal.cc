// SPDX-License-Identifier: Apache-2.0

#include "launcher/ddlrun/time_limit_signal.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>

#include "launcher/base/error.h"
#include "launcher/slurm/slurm_job.h"

namespace launcher {

TimeLimitWatcherOptions StopInTime(const Settings& settings, const Environment& environment) {
  using Clock = TimeLimitWatcher::Clock;
  TimeLimitWatcherOptions options;
  if (settings.stop_before.count() == 0) return options;
  const std::string option = "--stop-before " + std::to_string(settings.stop_before.count());
  const auto margin = static_cast<double>(settings.stop_before.count());
  std::optional<double> left = SecondsToTimeLimit(environment, std::chrono::system_clock::now());
  // SLURM_JOB_END_TIME is that of the job's start; the limit may have been extended since.
  if (left && *left <= margin && !SlurmJobNumber(environment).empty()) {
    if (const auto job = QuerySlurmForJob(environment)) left = job->seconds_left;
  }
  if (!left) {
    throw LaunchError(EX_CONFIG,
                      option +
                          ": the end of this job is not known: neither SLURM_JOB_END_TIME nor "
                          "'scontrol show job' tells a time limit; write #SBATCH --time, or leave "
                          "the option out");
  }
  if (*left <= margin) {
    throw LaunchError(EX_CONFIG, option + ": the job's time ends in " +
                                     std::to_string(std::max(0LL, static_cast<long long>(*left))) +
                                     " s already: give fewer seconds, or more #SBATCH --time");
  }
  options.end = Clock::now() +
                std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(*left));
  options.margin = settings.stop_before;
  options.signal = settings.stop_before_signal;
  options.question = ShowJobCommand(environment);
  options.environment = environment;
  const std::string number = SlurmJobNumber(environment);
  options.seconds_left = [number](const std::string& text) -> std::optional<double> {
    const std::optional<SlurmJob> job = ParseSlurmJob(text, number);
    if (!job) return std::nullopt;
    return job->seconds_left.value_or(std::numeric_limits<double>::infinity());
  };
  return options;
}

}  // namespace launcher
