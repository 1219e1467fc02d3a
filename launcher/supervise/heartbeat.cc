// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/heartbeat.h"

#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "launcher/base/error.h"
#include "launcher/protocol/rank_variables.h"
#include "support/descriptor.h"
#include "support/number.h"

namespace launcher {

void HeartbeatMonitor::Pass(double seconds) {
  for (File& file : files_) file.silence += seconds;
}

void HeartbeatMonitor::Look(int index, std::optional<std::int64_t> time) {
  File& file = files_.at(static_cast<std::size_t>(index));
  // What an earlier run has left is no heartbeat.
  const bool has_changed = file.is_known && time && time != file.time;
  file.is_known = true;
  if (time) file.time = time;
  if (!has_changed) return;
  file.has_changed = true;
  file.silence = 0;
}

void HeartbeatMonitor::Forget(int index) {
  files_.at(static_cast<std::size_t>(index)).is_forgotten = true;
}

std::vector<int> HeartbeatMonitor::Late() const {
  std::vector<int> late;
  for (std::size_t i = 0; i < files_.size(); ++i) {
    const File& file = files_[i];
    if (!file.is_forgotten && file.silence >= BoundOf(file)) late.push_back(static_cast<int>(i));
  }
  std::stable_sort(late.begin(), late.end(), [this](int a, int b) {
    return files_[static_cast<std::size_t>(a)].silence >
           files_[static_cast<std::size_t>(b)].silence;
  });
  return late;
}

namespace {

using Clock = std::chrono::steady_clock;

std::optional<std::int64_t> TimeOf(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return std::nullopt;
  return std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
}

bool IsOfEachRank(const std::string& pattern) {
  return pattern.find(kRankMark) != std::string::npos;
}

}  // namespace

// What the thread and its owner share.  The thread is left alone with it when its file system
// hangs.
struct Heartbeat::Shared {
  Shared(std::vector<std::string> names, std::chrono::milliseconds limit)
      : files(std::move(names)),
        heartbeats(static_cast<int>(files.size()), std::chrono::duration<double>(limit).count()),
        tick(
            std::clamp(limit / 10, std::chrono::milliseconds(20), std::chrono::milliseconds(5000))),
        event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  void Run();

  const std::vector<std::string> files;
  std::mutex mutex;
  HeartbeatMonitor heartbeats;
  bool is_reported = false;  // the event is readable
  bool is_stopping = false;
  std::condition_variable stops;
  const std::chrono::milliseconds tick;
  const support::Descriptor event;
};

void Heartbeat::Shared::Run() {
  std::vector<std::optional<std::int64_t>> times(files.size());
  for (auto last = Clock::now();;) {
    // Without the lock, since this may take as long as the file system likes.
    std::transform(files.begin(), files.end(), times.begin(), TimeOf);
    std::unique_lock lock(mutex);
    const auto now = Clock::now();
    heartbeats.Pass(
        std::chrono::duration<double>(std::min<Clock::duration>(now - last, 2 * tick)).count());
    last = now;
    for (std::size_t i = 0; i < times.size(); ++i) heartbeats.Look(static_cast<int>(i), times[i]);
    if (!is_reported && !heartbeats.Late().empty()) {
      const std::uint64_t one = 1;
      is_reported = write(event.fd(), &one, sizeof(one)) == sizeof(one);
    }
    if (stops.wait_for(lock, tick, [this] { return is_stopping; })) return;
  }
}

std::string HeartbeatFile(const std::string& pattern, int rank) {
  const std::size_t mark = pattern.find(kRankMark);
  if (mark == std::string::npos) return pattern;
  return pattern.substr(0, mark) + std::to_string(rank) +
         pattern.substr(mark + std::strlen(kRankMark));
}

Heartbeat::Heartbeat(const HeartbeatOptions& options) : options_(options) {
  const int count = IsOfEachRank(options.pattern) ? options.ranks : 1;
  std::vector<std::string> files;
  for (int rank = 0; rank < count; ++rank) files.push_back(HeartbeatFile(options.pattern, rank));
  shared_ = std::make_shared<Shared>(std::move(files), options.limit);
  if (!shared_->event.is_open()) throw OsError("cannot watch --heartbeat");
  try {
    std::thread([shared = shared_] { shared->Run(); }).detach();
  } catch (const std::system_error& error) {
    throw LaunchError(EX_OSERR, std::string("cannot watch --heartbeat: ") + error.what());
  }
}

Heartbeat::~Heartbeat() {
  const std::lock_guard lock(shared_->mutex);
  shared_->is_stopping = true;
  shared_->stops.notify_one();
}

int Heartbeat::fd() const { return shared_->event.fd(); }

void Heartbeat::SetSilences(JobStatus* status) const {
  if (!IsOfEachRank(options_.pattern)) return;
  const std::lock_guard lock(shared_->mutex);
  for (int rank = 0; rank < std::min(options_.ranks, support::Size(status->ranks)); ++rank) {
    status->ranks[static_cast<std::size_t>(rank)].silence = shared_->heartbeats.SilenceOf(rank);
  }
}

std::optional<std::string> Heartbeat::TakeLate(const std::vector<std::string>& hosts,
                                               const std::set<int>& ended) {
  const std::lock_guard lock(shared_->mutex);
  if (!std::exchange(shared_->is_reported, false)) return std::nullopt;
  std::uint64_t count = 0;
  if (read(shared_->event.fd(), &count, sizeof(count)) < 0) return std::nullopt;
  const bool is_of_each_rank = IsOfEachRank(options_.pattern);
  for (const int rank : ended) {
    if (is_of_each_rank && rank < options_.ranks) shared_->heartbeats.Forget(rank);
  }
  const std::vector<int> late = shared_->heartbeats.Late();
  if (late.empty()) return std::nullopt;
  const auto seconds = static_cast<long long>(shared_->heartbeats.SilenceOf(late.front()));
  std::string who = "no rank has touched ";
  const auto first = static_cast<std::size_t>(late.front());
  if (is_of_each_rank) {
    who = "rank " + std::to_string(late.front()) + " on " +
          (first < hosts.size() ? hosts[first] : "") + " has not touched ";
  }
  return who + shared_->files[first] + " for " + std::to_string(seconds) + " s";
}

}  // namespace launcher
