// SPDX-License-Identifier: Apache-2.0

#include "launcher/features/heartbeat.h"

#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "launcher/base/error.h"
#include "launcher/cli/option_values.h"
#include "launcher/protocol/rank_variables.h"
#include "launcher/system/files.h"
#include "support/descriptor.h"
#include "support/number.h"

namespace launcher {
namespace {

constexpr int kHangAfter = 300;  // seconds

std::vector<OptionSpec> HeartbeatRows() {
  return {
      {.section = kHowSection,
       .names = {"heartbeat"},
       .argument = "FILE",
       .help =
           "end the job, with exit code 70, when the program no longer touches FILE, as it must "
           "with every step; %r in FILE is the rank, so that the one which hangs is named. "
           "Ranks find FILE in DDLRUN_HEARTBEAT; its directory is made",
       .set = SetText<&Options::heartbeat>},
      {.section = kHowSection,
       .names = {"hang-after"},
       .also = {"hang-timeout"},
       .argument = "N",
       .unit = "seconds",
       .default_value = "300",
       .help = "how long --heartbeat may stay untouched; ten times as long before the first time",
       .set = SetCount<&Options::hang_after>}};
}

void MergeHeartbeat(const Options& options, Settings* settings) {
  if (options.hang_after && options.heartbeat.empty()) {
    throw LaunchError(EX_USAGE,
                      "--hang-after needs --heartbeat FILE: a file that the program touches with "
                      "every step");
  }
  if (options.heartbeat.empty()) return;
  const std::string pattern = AbsolutePath(options.heartbeat);
  settings->rank_settings[kHeartbeatVariable] = pattern;
  settings->Show("heartbeat", pattern, true);
  settings->Show("hang_after", std::to_string(options.hang_after.value_or(kHangAfter)),
                 options.hang_after.has_value());
}

std::unique_ptr<JobWatcher> WatchHeartbeat(const JobRun& run) {
  if (run.options.heartbeat.empty()) return nullptr;
  const std::string pattern = AbsolutePath(run.options.heartbeat);
  MakeDirectory(std::filesystem::path(pattern).parent_path());
  return std::make_unique<Heartbeat>(
      HeartbeatOptions{.pattern = pattern,
                       .limit = std::chrono::seconds(run.options.hang_after.value_or(kHangAfter)),
                       .ranks = support::Size(run.hosts)});
}

}  // namespace

const Feature kHeartbeat = {HeartbeatRows, MergeHeartbeat, WatchHeartbeat};

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

void Heartbeat::OnLaunch(WatchedJob& /*job*/) {
  const int count = IsOfEachRank(options_.pattern) ? options_.ranks : 1;
  std::vector<std::string> files;
  for (int rank = 0; rank < count; ++rank) files.push_back(HeartbeatFile(options_.pattern, rank));
  Stop();
  shared_ = std::make_shared<Shared>(std::move(files), options_.limit);
  if (!shared_->event.is_open()) throw OsError("cannot watch --heartbeat");
  try {
    std::thread([shared = shared_] { shared->Run(); }).detach();
  } catch (const std::system_error& error) {
    throw LaunchError(EX_OSERR, std::string("cannot watch --heartbeat: ") + error.what());
  }
}

void Heartbeat::Stop() {
  if (shared_ == nullptr) return;
  const std::lock_guard lock(shared_->mutex);
  shared_->is_stopping = true;
  shared_->stops.notify_one();
}

int Heartbeat::fd() const { return shared_ == nullptr ? -1 : shared_->event.fd(); }

void Heartbeat::AddTo(JobStatus* status) const {
  if (shared_ == nullptr || !IsOfEachRank(options_.pattern)) return;
  const std::lock_guard lock(shared_->mutex);
  for (int rank = 0; rank < std::min(options_.ranks, support::Size(status->ranks)); ++rank) {
    status->ranks[static_cast<std::size_t>(rank)].silence = shared_->heartbeats.SilenceOf(rank);
  }
}

void Heartbeat::Poll(WatchedJob& job) {
  if (shared_ == nullptr) return;
  if (!job.IsRunning() || job.IsStopRequested()) {
    Stop();
    return shared_.reset();
  }
  const std::optional<std::string> late = TakeLate(job);
  if (!late) return;
  if (job.IsOutputHeld()) return OnLaunch(job);  // who waits for a reader cannot go on
  job.End({.exit_code = EX_SOFTWARE, .text = "it hangs: " + *late + " (--hang-after)"});
}

// Who is late: "rank 3 on n2 has not touched /scratch/beat.3 for 60 s".  Ranks that have ended
// touch their files no more.
std::optional<std::string> Heartbeat::TakeLate(const WatchedJob& job) {
  const std::lock_guard lock(shared_->mutex);
  if (!std::exchange(shared_->is_reported, false)) return std::nullopt;
  std::uint64_t count = 0;
  if (read(shared_->event.fd(), &count, sizeof(count)) < 0) return std::nullopt;
  const bool is_of_each_rank = IsOfEachRank(options_.pattern);
  for (const int rank : job.ended()) {
    if (is_of_each_rank && rank < options_.ranks) shared_->heartbeats.Forget(rank);
  }
  const std::vector<int> late = shared_->heartbeats.Late();
  if (late.empty()) return std::nullopt;
  const auto seconds = static_cast<long long>(shared_->heartbeats.SilenceOf(late.front()));
  std::string who = "no rank has touched ";
  const auto first = static_cast<std::size_t>(late.front());
  if (is_of_each_rank) {
    who = "rank " + std::to_string(late.front()) + " on " +
          (first < job.hosts().size() ? job.hosts()[first] : "") + " has not touched ";
  }
  return who + shared_->files[first] + " for " + std::to_string(seconds) + " s";
}

}  // namespace launcher
