// SPDX-License-Identifier: Apache-2.0

#include "launcher/features/run_recorder.h"

#include <sysexits.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "launcher/base/error.h"
#include "launcher/cli/option_values.h"
#include "launcher/slurm/slurm_job.h"
#include "launcher/system/files.h"
#include "support/file.h"
#include "support/number.h"

namespace launcher {
namespace {

constexpr std::chrono::milliseconds kMinBetweenLooks{5000};
constexpr std::chrono::milliseconds kMaxBetweenLooks{30000};
// A directory of thousands of checkpoints is looked at less often: a twentieth of the time at most.
constexpr int kPausePerLook = 20;
// So that a killed ddlrun loses little (kSilentSeconds is a multiple).
constexpr double kSecondsBetweenRecords = 30;
constexpr std::chrono::seconds kRecordTimeout{2};  // at the end of a start, for the file system

std::vector<OptionSpec> RunRecorderRows() {
  return {{.section = kHowSection,
           .names = {"metrics-dir"},
           .argument = "DIR",
           .help = "write what the run costs (time that was productive, lost by restarts, ...) to "
                   "DIR/ddlrun-*.prom, for the textfile collector of Prometheus' node exporter, "
                   "and, without --log-dir, to DIR/run-*.json for ddlctl history; DIR is made",
           .set = SetText<&Options::metrics_directory>}};
}

std::unique_ptr<JobWatcher> WatchRun(const JobRun& run) {
  return run.recorder == nullptr ? nullptr : std::make_unique<RunRecorderWatcher>(*run.recorder);
}

double SystemSeconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

const Feature kRunRecorder = {RunRecorderRows, nullptr, WatchRun};

void ChangeTracker::Look(std::optional<FileTime> time, FileTime file_now, double now) {
  if (looked_ && time && time != time_) {
    const double age = std::chrono::duration<double>(file_now - *time).count();
    // Another age is that of another clock, or of a file that was put there with its old time.
    changed_ = age >= 0 && age <= now - *looked_ ? now - age : now;
  }
  if (time) time_ = time;
  looked_ = now;
}

// What the thread and its owner share.  The thread is left alone with it when its file system
// hangs.
struct RunRecorder::Shared {
  double Now() const { return std::chrono::duration<double>(Clock::now() - begin).count(); }
  void Look(std::unique_lock<std::mutex>& lock);
  void Write(std::unique_lock<std::mutex>& lock);
  void Run();
  LaunchRecord Record() const;

  RunRecorderOptions options;
  Clock::time_point begin;

  mutable std::mutex mutex;  // of all below
  std::condition_variable changes;
  RunTimeline timeline;
  ChangeTracker tracker;
  std::optional<int> exit_code;  // of ddlrun
  int error = 0;                 // errno of the last writing
  std::filesystem::path failed;  // which file that was
  double written = 0;
  bool has_changed = false;  // since then
  bool is_stopping = false;
  bool is_running = false;  // the thread
};

LaunchRecord RunRecorder::Shared::Record() const {
  LaunchRecord record = options.head;
  record.cost = SplitRun(timeline, Now());
  record.exit_code = exit_code;
  return record;
}

void RunRecorder::Shared::Look(std::unique_lock<std::mutex>& lock) {
  if (!options.progress_time) return;
  lock.unlock();
  const auto time = options.progress_time();
  const auto file_now = ChangeTracker::FileTime::clock::now();
  lock.lock();
  tracker.Look(time, file_now, Now());
  if (timeline.starts.empty()) return;
  StartTimes& start = timeline.starts.back();
  if (tracker.changed() >= start.launched) start.checkpoint = tracker.changed();
}

void RunRecorder::Shared::Write(std::unique_lock<std::mutex>& lock) {
  has_changed = false;
  written = Now();
  const LaunchRecord record = Record();
  lock.unlock();
  int first_error = 0;
  std::filesystem::path which;
  const auto replace = [&](const std::filesystem::path& path, const std::string& text) {
    if (path.empty()) return;
    const int problem = support::ReplaceFile(path, text);
    if (problem == 0 || first_error != 0) return;
    first_error = problem;
    which = path;
  };
  replace(options.metrics, FormatMetrics(record));
  replace(options.run_file, FormatLaunch(record));
  lock.lock();
  error = first_error;
  failed = which;
}

void RunRecorder::Shared::Run() {
  std::unique_lock lock(mutex);
  for (;;) {
    const bool is_last = is_stopping;
    const auto start = Clock::now();
    Look(lock);
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
    if (is_last || has_changed || Now() - written >= kSecondsBetweenRecords) Write(lock);
    if (is_last) break;
    changes.wait_for(lock, std::clamp(kPausePerLook * took, kMinBetweenLooks, kMaxBetweenLooks),
                     [this] { return is_stopping || has_changed; });
  }
  is_running = false;
  changes.notify_all();
}

RunRecorderOptions RecorderOptionsOf(const Options& options, const Environment& environment) {
  RunRecorderOptions result;
  LaunchRecord& head = result.head;
  head.job = SlurmJobNumber(environment);
  head.cluster = head.job.empty() ? "" : ValueOr(environment, "SLURM_CLUSTER_NAME", "");
  std::array<char, 256> host = {};
  gethostname(host.data(), host.size() - 1);
  head.host = host.data();
  head.pid = static_cast<int>(getpid());
  // What is not a number is an error of Restarts.
  const std::string requeues = ValueOr(environment, "SLURM_RESTART_COUNT", "0");
  head.requeues = std::max(0, support::WholeNumber<int>(requeues).value_or(0));
  head.start = SystemSeconds();
  const std::string& metrics = options.metrics_directory;
  const std::string& directory = options.log_directory.empty() ? metrics : options.log_directory;
  if (!metrics.empty()) {
    const std::string problem = support::MakeDirectories(metrics);
    if (!problem.empty()) {
      throw LaunchError(EX_OSERR, "cannot make the directory " + metrics + ": " + problem +
                                      "; give another --metrics-dir");
    }
    result.metrics = AbsolutePath(metrics) + "/" + MetricsFileName(head);
  }
  if (!directory.empty()) result.run_file = AbsolutePath(directory) + "/" + RunFileName(head);
  if (!options.heartbeat.empty()) result.source = ProgressSource::kHeartbeat;
  return result;
}

RunRecorder::RunRecorder(RunRecorderOptions options, Clock::time_point begin)
    : shared_(std::make_shared<Shared>()) {
  Shared& shared = *shared_;
  shared.options = std::move(options);
  shared.begin = begin;
  shared.options.head.start -= shared.Now();
  if (shared.options.progress_time) shared.options.source = ProgressSource::kCheckpoints;
  shared.timeline.source = shared.options.source;
  std::unique_lock lock(shared.mutex);
  shared.Look(lock);
  const std::filesystem::path& metrics = shared.options.metrics;
  if (metrics.empty()) return;
  const int problem = support::ReplaceFile(metrics, FormatMetrics(shared.Record()));
  if (problem != 0) {
    throw LaunchError(EX_OSERR, metrics.string() + " cannot be written: " +
                                    support::DescribeWriteError(metrics, problem) +
                                    "; give another --metrics-dir");
  }
}

// Without threads left there is no file: a job does not end for that.
void RunRecorder::StartThread(bool is_last) {
  Shared& shared = *shared_;
  if (shared.is_running) return;  // it hangs, and no two may write a file
  shared.is_stopping = is_last;
  shared.is_running = true;
  try {
    std::thread([shared = shared_] { shared->Run(); }).detach();
  } catch (const std::system_error&) {
    shared.is_running = false;
  }
}

void RunRecorder::OnLaunch() {
  const std::lock_guard lock(shared_->mutex);
  shared_->timeline.starts.emplace_back().launched = shared_->Now();
  shared_->has_changed = true;
  StartThread(/*is_last=*/false);
}

void RunRecorder::OnRunning() {
  const std::lock_guard lock(shared_->mutex);
  StartTimes& start = shared_->timeline.starts.back();
  if (start.running) return;
  start.running = shared_->Now();
  shared_->has_changed = true;
  shared_->changes.notify_all();
}

bool RunRecorder::has_noticed() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->timeline.starts.back().noticed.has_value();
}

void RunRecorder::OnNoticed(std::optional<double> silence) {
  const std::lock_guard lock(shared_->mutex);
  StartTimes& start = shared_->timeline.starts.back();
  if (start.noticed) return;
  start.noticed = shared_->Now();
  if (silence) start.progress = *start.noticed - *silence;
  shared_->has_changed = true;
  shared_->changes.notify_all();
}

void RunRecorder::OnGone(int exit_code, std::optional<double> joules, bool lacks_energy) {
  {
    const std::lock_guard lock(shared_->mutex);
    StartTimes& start = shared_->timeline.starts.back();
    start.gone = shared_->Now();
    start.has_failed = exit_code != EX_OK && exit_code != EX_TEMPFAIL;
    start.energy = joules;
    start.lacks_energy = lacks_energy;
  }
  StopThread();
}

void RunRecorder::StopThread() {
  std::unique_lock lock(shared_->mutex);
  shared_->is_stopping = true;
  shared_->changes.notify_all();
  shared_->changes.wait_for(lock, kRecordTimeout, [this] { return !shared_->is_running; });
}

std::string RunRecorder::OnEnd(int exit_code) {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->timeline.end = shared_->Now();
    shared_->exit_code = exit_code;
    if (shared_->options.run_file.empty() && shared_->options.metrics.empty()) return "";
    StartThread(/*is_last=*/true);
  }
  StopThread();
  const std::lock_guard lock(shared_->mutex);
  if (shared_->error == 0) return "";
  return shared_->failed.string() +
         " cannot be written: " + support::DescribeWriteError(shared_->failed, shared_->error);
}

RunCost RunRecorder::Cost() const {
  const std::lock_guard lock(shared_->mutex);
  return SplitRun(shared_->timeline, shared_->Now());
}

void RunRecorderWatcher::OnLaunch(WatchedJob& job) {
  recorder_.OnLaunch();
  Poll(job);
}

namespace {

// Since the last heartbeat of the slowest rank that still runs.
std::optional<double> SilenceOf(const WatchedJob& job) {
  JobStatus status;
  status.ranks.resize(job.hosts().size());
  job.AskWatchers(&status);
  std::optional<double> silence = status.silence;
  for (int rank = 0; rank < support::Size(status.ranks); ++rank) {
    if (job.ended().contains(rank)) continue;
    silence = std::max(silence, status.ranks[static_cast<std::size_t>(rank)].silence);
  }
  return silence;
}

bool HasFailed(const WatchedJob& job) {
  return std::ranges::any_of(job.exit_codes(),
                             [](const auto& code) { return code.second != EX_TEMPFAIL; });
}

}  // namespace

void RunRecorderWatcher::Poll(WatchedJob& job) {
  if (job.started().size() >= job.hosts().size()) recorder_.OnRunning();
  const bool is_over = !job.IsRunning() || job.IsStopRequested() || HasFailed(job);
  if (is_over && !recorder_.has_noticed()) recorder_.OnNoticed(SilenceOf(job));
}

}  // namespace launcher
