// SPDX-License-Identifier: Apache-2.0

#include "launcher/features/nodes_of_job.h"

#include "launcher/base/error.h"
#include "launcher/slurm/slurm_job.h"

namespace launcher {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{100};  // at a question that is under way
constexpr std::chrono::milliseconds kSlurmTimeout{10000};

std::unique_ptr<JobWatcher> WatchNodesOfJob(const JobRun& run) {
  if (run.planned.job_id.empty()) return nullptr;
  NodesOfJobOptions options;
  options.question = ShowJobCommand(run.environment);
  options.environment = WithoutDefaultsOfSlurmTools(run.environment);
  const std::string number = SlurmJobNumber(run.environment);
  options.rejection = [number, hosts = run.hosts](const std::string& text) {
    const std::optional<SlurmJob> job = ParseSlurmJob(text, number);
    return job ? RejectionOfHosts(*job, hosts) : "";
  };
  return std::make_unique<NodesOfJob>(std::move(options));
}

// Null where it cannot be asked: the machine may have no process left.
std::unique_ptr<CommandOutput> Ask(const NodesOfJobOptions& options) {
  if (options.question.empty()) return nullptr;
  try {
    return std::make_unique<CommandOutput>(options.question, options.environment);
  } catch (const LaunchError&) {
    return nullptr;
  }
}

std::string AnswerOf(CommandOutput* question, std::chrono::milliseconds limit,
                     const NodesOfJobOptions& options) {
  return question != nullptr && question->Wait(limit) ? options.rejection(question->text()) : "";
}

OwnEnd RejectedFor(const std::string& text) {
  return {.kind = OwnEnd::Kind::kRejected, .exit_code = EX_CONFIG, .text = text};
}

}  // namespace

const Feature kNodesOfJob = {nullptr, nullptr, WatchNodesOfJob};

void NodesOfJob::OnLaunch(WatchedJob& job) {
  if (!options_.question.empty()) deadline_ = job.Now() + query_after_;
}

void NodesOfJob::Poll(WatchedJob& job) {
  if (!job.IsBeforeStart() || !job.IsRunning() || job.IsStopRequested()) {
    deadline_.reset();
    question_.reset();
    return;
  }
  const std::string rejection = Rejection(job.Now());
  if (!rejection.empty()) job.Kill(RejectedFor(rejection));
}

// Asks when it is time, and reads the answer: "" until there is one.
std::string NodesOfJob::Rejection(WatchedJob::Clock::time_point now) {
  if (!deadline_ || now < *deadline_) return "";
  if (question_ == nullptr) question_ = Ask(options_);
  deadline_ = now + kBetweenLooks;
  if (question_ != nullptr && !question_->HasEnded()) return "";
  std::string rejection = AnswerOf(question_.get(), std::chrono::milliseconds(0), options_);
  question_.reset();
  query_after_ *= 2;
  deadline_ = now + query_after_;
  return rejection;
}

void NodesOfJob::OnEnd(const WatchedJob& job, JobResult* result) {
  const bool has_failed = job.IsBeforeStart() && result->exit_code != 0 && !result->own_end;
  if (!has_failed || result->stop_requested) return;
  const std::string rejection = AnswerOf(Ask(options_).get(), kSlurmTimeout, options_);
  if (!rejection.empty()) result->own_end = RejectedFor(rejection);
}

}  // namespace launcher
