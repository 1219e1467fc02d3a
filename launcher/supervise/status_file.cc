// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/status_file.h"

#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "support/file.h"
#include "support/number.h"

namespace launcher {
namespace {

constexpr std::chrono::seconds kBetweenFiles{2};
constexpr std::chrono::seconds kTimeout{2};  // at the end, with a file that is being written

}  // namespace

void SetRankStates(const std::set<int>* started, const std::set<int>& ended,
                   const std::map<int, int>& exit_codes, JobStatus* status) {
  for (int i = 0; i < support::Size(status->ranks); ++i) {
    JobStatus::Rank& rank = status->ranks[static_cast<std::size_t>(i)];
    const bool has_started = started == nullptr || started->contains(i);
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

StatusFile::StatusFile(const StatusFileOptions& options) {
  if (options.path.empty()) return;
  shared_ = std::make_shared<Shared>();
  shared_->path = options.path;
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

void StatusFile::Write(JobStatus status) {
  // Thousands of ranks make long files.
  next_ = Clock::now() + kBetweenFiles + std::chrono::milliseconds(status.ranks.size());
  status.written =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  const std::lock_guard lock(shared_->mutex);
  shared_->next = std::move(status);
  shared_->changes.notify_all();
}

}  // namespace launcher
