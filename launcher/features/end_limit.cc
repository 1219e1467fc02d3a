// SPDX-License-Identifier: Apache-2.0

#include "launcher/features/end_limit.h"

#include "launcher/base/error.h"
#include "launcher/cli/option_values.h"
#include "launcher/cli/user_program.h"

namespace launcher {
namespace {

std::vector<OptionSpec> EndLimitRows() {
  return {{.section = kHowSection,
           .names = {"end-limit"},
           .also = {"wait"},
           .argument = "N",
           .unit = "seconds",
           .default_value = "60 for ddltraind, otherwise 0",
           .help = "end the job, with exit code 69, when a rank is still there N seconds after the "
                   "first one has ended without a failure; 0: no limit",
           .set = SetCount<&Options::end_limit, 0>}};
}

// The ranks of ddltraind end together: the last thing that each does is to wait for the others.
int LimitOf(const Options& options) {
  return options.end_limit.value_or(TrainerArguments(options.program) ? 60 : 0);
}

void MergeEndLimit(const Options& options, Settings* settings) {
  settings->Show("end_limit", std::to_string(LimitOf(options)), options.end_limit.has_value());
}

std::unique_ptr<JobWatcher> WatchEndLimit(const JobRun& run) {
  const int limit = LimitOf(run.options);
  return limit == 0 ? nullptr : std::make_unique<EndLimit>(std::chrono::seconds(limit));
}

// That of ranks that stopped early, unless one has failed: after a request to stop a failure does
// not end the job.
int CodeOf(const std::map<int, int>& exit_codes) {
  for (const auto& [rank, code] : exit_codes) {
    if (code != EX_TEMPFAIL) return code;
  }
  return exit_codes.empty() ? EX_UNAVAILABLE : EX_TEMPFAIL;
}

}  // namespace

const Feature kEndLimit = {EndLimitRows, MergeEndLimit, WatchEndLimit};

void EndLimit::OnEvent(WatchedJob& job, Event /*event*/) {
  const std::size_t ranks = job.hosts().size();
  const std::size_t ended = job.ended().size();
  if (job.started().size() < ranks || ended == 0) return;
  if (ended == ranks) {
    deadline_.reset();
  } else if (!deadline_) {
    deadline_ = job.Now() + limit_;
  }
}

void EndLimit::OnContinue(WatchedJob& job) {
  if (deadline_) deadline_ = job.Now() + limit_;
}

void EndLimit::Poll(WatchedJob& job) {
  if (!job.IsRunning()) return deadline_.reset();
  if (!deadline_ || job.Now() < *deadline_) return;
  if (job.AreRanksHeld()) return OnContinue(job);  // they cannot go on
  job.Kill({.exit_code = CodeOf(job.exit_codes()),
            .text = "its end hung: " + SomeOf(RanksNotEnded(job.hosts(), job.ended())) +
                    " did not end in time after the other ranks had (--end-limit)"});
}

}  // namespace launcher
