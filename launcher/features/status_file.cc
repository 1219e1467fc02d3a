// SPDX-License-Identifier: Apache-2.0

#include "launcher/features/status_file.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "launcher/slurm/slurm_job.h"
#include "support/file.h"
#include "support/number.h"
#include "support/quoting.h"

namespace launcher {
namespace {

constexpr std::chrono::milliseconds kBetweenFiles{2000};
constexpr std::chrono::milliseconds kMaxBetweenFiles{5000};
// Thousands of ranks make long files: one of 32,768 ranks takes about 15 ms.
constexpr std::size_t kRanksPerMillisecond = 32;
constexpr std::chrono::seconds kTimeout{2};  // at the end, with a file that is being written

double SecondsSince1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// All but the states of the ranks, which have yet to start.
JobStatus StatusAtStart(const JobRun& run) {
  JobStatus status;
  status.job = SlurmJobNumber(run.environment);
  std::array<char, 256> host = {};
  gethostname(host.data(), host.size() - 1);
  status.host = host.data();
  status.pid = static_cast<int>(getpid());
  status.launcher = run.launch.choice.name;
  status.restarts = run.planned.restart_count;
  status.program = support::QuoteCommand(run.options.program);
  if (run.environment.contains("SLURM_JOB_END_TIME")) {
    const auto left = SecondsToTimeLimit(run.environment, std::chrono::system_clock::now());
    if (left && *left > 0) status.ends = SecondsSince1970() + *left;
  }
  for (const std::string& rank_host : run.hosts) status.ranks.emplace_back().host = rank_host;
  return status;
}

std::unique_ptr<JobWatcher> WatchStatusFile(const JobRun& run) {
  return std::make_unique<StatusFile>(
      StatusFileOptions{run.directory + "/" + kStatusFileName, StatusAtStart(run)});
}

}  // namespace

const Feature kStatusFile = {nullptr, nullptr, WatchStatusFile};

void SetRankStates(const std::set<int>& started, const std::set<int>& ended,
                   const std::map<int, int>& exit_codes, JobStatus* status) {
  for (int i = 0; i < support::Size(status->ranks); ++i) {
    JobStatus::Rank& rank = status->ranks[static_cast<std::size_t>(i)];
    const bool has_started = started.contains(i);
    rank.state = ended.contains(i) ? JobStatus::RankState::kEnded
                 : has_started     ? JobStatus::RankState::kRunning
                                   : JobStatus::RankState::kStarting;
    const auto code = exit_codes.find(i);
    if (code != exit_codes.end()) rank.exit_code = code->second;
  }
}

// What the thread and its owner share.  The thread is left alone with it when its file system
// hangs.
struct StatusFile::Shared {
  void Run();

  std::string path;
  std::mutex mutex;
  std::condition_variable changes;
  std::optional<JobStatus> next;  // to be written
  bool is_writing = false;
  bool is_stopping = false;
};

void StatusFile::Shared::Run() {
  for (;;) {
    std::optional<JobStatus> status;
    {
      std::unique_lock lock(mutex);
      changes.wait(lock, [this] { return next || is_stopping; });
      if (is_stopping) return;
      status.swap(next);
      is_writing = true;
    }
    // Where it cannot be written nobody is told: it is for who asks.
    support::ReplaceFile(path, FormatJobStatus(*status), {.mode = 0600});
    const std::lock_guard lock(mutex);
    is_writing = false;
    changes.notify_all();
  }
}

StatusFile::StatusFile(StatusFileOptions options) : options_(std::move(options)) {
  shared_ = std::make_shared<Shared>();
  shared_->path = options_.path;
  try {
    std::thread([shared = shared_] { shared->Run(); }).detach();
    next_ = Clock::now();
  } catch (const std::system_error&) {
    shared_.reset();
  }
}

StatusFile::~StatusFile() {
  if (shared_ == nullptr) return;
  std::unique_lock lock(shared_->mutex);
  shared_->is_stopping = true;
  shared_->changes.notify_all();
  shared_->changes.wait_for(lock, kTimeout, [this] { return !shared_->is_writing; });
}

void StatusFile::OnLaunch(WatchedJob& /*job*/) { options_.head.started = SecondsSince1970(); }

void StatusFile::Poll(WatchedJob& job) {
  if (!next_ || job.Now() < *next_) return;
  JobStatus status = options_.head;
  SetRankStates(job.started(), job.ended(), job.exit_codes(), &status);
  job.AskWatchers(&status);
  Write(std::move(status));
}

void StatusFile::Write(JobStatus status) {
  if (shared_ == nullptr) return;
  next_ = Clock::now() + std::min(kMaxBetweenFiles,
                                  kBetweenFiles + std::chrono::milliseconds(status.ranks.size() /
                                                                            kRanksPerMillisecond));
  status.written = SecondsSince1970();
  const std::lock_guard lock(shared_->mutex);
  shared_->next = std::move(status);
  shared_->changes.notify_all();
}

}  // namespace launcher
