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

double HeartbeatClock::Count(double seconds, bool no_answers) {
  waiting_ = std::min(limit_, waiting_ + std::min(limit_, seconds));
  return no_answers ? 0 : std::exchange(waiting_, 0);
}

void HeartbeatMonitor::Look(int index, std::optional<std::int64_t> time, double as_of) {
  File& file = files_.at(static_cast<std::size_t>(index));
  // What an earlier run has left is no heartbeat.
  const bool has_changed = file.is_known && time && time != file.time;
  file.is_known = true;
  if (time) file.time = time;
  if (has_changed) {
    file.has_changed = true;
    file.changed = elapsed_;
  }
  // It may have changed since it was looked for.
  file.silence = std::max(0.0, as_of - file.changed);
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

std::optional<std::int64_t> TimeOfFile(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return std::nullopt;
  return std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
}

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxThreads = 16;  // that look at the files

double SecondsOf(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

bool IsOfEachRank(const std::string& pattern) {
  return pattern.find(kRankMark) != std::string::npos;
}

}  // namespace

// What the threads and their owner share.  The threads are left alone with it when their file
// system hangs.
struct Heartbeat::Shared : std::enable_shared_from_this<Heartbeat::Shared> {
  Shared(std::vector<std::string> names, const HeartbeatOptions& options)
      : files(std::move(names)),
        time_of(options.time_of),
        tick(std::clamp(options.limit / 10, std::chrono::milliseconds(20),
                        std::chrono::milliseconds(5000))),
        next(files.size()),
        clock(SecondsOf(tick)),
        heartbeats(static_cast<int>(files.size()), SecondsOf(options.limit)),
        event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  // The first two threads; throws std::system_error where there are none left.
  void Start();

  const std::vector<std::string> files;
  const decltype(HeartbeatOptions::time_of) time_of;
  const std::chrono::milliseconds tick;

  std::mutex mutex;  // of all below
  std::size_t threads = 0;
  // A pass over the files: that one is looked for next, so many have not answered; whether any has
  // since the time was counted last.
  std::size_t next;
  std::size_t unanswered = 0;
  bool has_answers = false;
  HeartbeatClock clock;
  HeartbeatMonitor heartbeats;
  bool is_reported = false;  // the event is readable
  bool is_stopping = false;
  std::condition_variable passes;  // a pass begins, or the end is near
  std::condition_variable ends;    // a pass ends, or the end is near
  const support::Descriptor event;

 private:
  using Lock = std::unique_lock<std::mutex>;

  void AddThread();
  void LookAtFiles();
  void WatchPasses();
  bool WaitForPass(Lock& lock);
};

void Heartbeat::Shared::AddThread() {
  std::thread([self = shared_from_this()] { self->LookAtFiles(); }).detach();
  ++threads;
}

void Heartbeat::Shared::Start() {
  const std::lock_guard lock(mutex);
  AddThread();
  std::thread([self = shared_from_this()] { self->WatchPasses(); }).detach();
}

void Heartbeat::Shared::LookAtFiles() {
  Lock lock(mutex);
  for (;;) {
    passes.wait(lock, [this] { return is_stopping || next < files.size(); });
    if (is_stopping) return;
    const std::size_t index = next++;
    const double as_of = heartbeats.elapsed();
    lock.unlock();
    // Without the lock, since this may take as long as the file system likes.
    const std::optional<std::int64_t> time = time_of(files[index]);
    lock.lock();
    heartbeats.Look(static_cast<int>(index), time, as_of);
    has_answers = true;
    if (--unanswered == 0) ends.notify_all();
  }
}

// False when it is to stop.
bool Heartbeat::Shared::WaitForPass(Lock& lock) {
  for (auto last = Clock::now();;) {
    // While a pass lasts the time is counted as well, so that what it took is known from the time
    // in which this process was stopped.
    const bool is_over =
        ends.wait_for(lock, tick, [this] { return is_stopping || unanswered == 0; });
    if (is_stopping) return false;
    const auto now = Clock::now();
    const bool no_answers = !std::exchange(has_answers, false);
    heartbeats.Pass(clock.Count(SecondsOf(now - std::exchange(last, now)), no_answers));
    if (is_over) return true;
    const std::size_t more = std::min({threads, kMaxThreads - threads, files.size() - next});
    try {
      for (std::size_t i = 0; i < more; ++i) AddThread();
    } catch (const std::system_error&) {
      // Those that there are go on.
    }
  }
}

void Heartbeat::Shared::WatchPasses() {
  Lock lock(mutex);
  for (;;) {
    next = 0;
    unanswered = files.size();
    passes.notify_all();
    if (!WaitForPass(lock)) return;
    if (!is_reported && !heartbeats.Late().empty()) {
      const std::uint64_t one = 1;
      is_reported = write(event.fd(), &one, sizeof(one)) == sizeof(one);
    }
    const auto start = Clock::now();
    if (ends.wait_for(lock, tick, [this] { return is_stopping; })) return;
    heartbeats.Pass(clock.Count(SecondsOf(Clock::now() - start), /*no_answers=*/false));
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
  shared_ = std::make_shared<Shared>(std::move(files), options_);
  if (!shared_->event.is_open()) throw OsError("cannot watch --heartbeat");
  try {
    shared_->Start();
  } catch (const std::system_error& error) {
    Stop();
    throw LaunchError(EX_OSERR, std::string("cannot watch --heartbeat: ") + error.what());
  }
}

// Nobody knows when ranks touch their files again that a debugger has stopped.
void Heartbeat::OnDetach(WatchedJob& job) {
  if (shared_ != nullptr) OnLaunch(job);
}

void Heartbeat::Stop() {
  if (shared_ == nullptr) return;
  const std::lock_guard lock(shared_->mutex);
  shared_->is_stopping = true;
  shared_->passes.notify_all();
  shared_->ends.notify_all();
}

int Heartbeat::fd() const { return shared_ == nullptr ? -1 : shared_->event.fd(); }

void Heartbeat::AddTo(JobStatus* status) const {
  if (shared_ == nullptr) return;
  const std::lock_guard lock(shared_->mutex);
  if (!IsOfEachRank(options_.pattern)) {
    status->silence = shared_->heartbeats.SilenceOf(0);
    return;
  }
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
  if (job.AreRanksHeld()) return OnLaunch(job);  // they cannot go on
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
