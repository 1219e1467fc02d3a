// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/formats/progress.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <system_error>
#include <thread>
#include <utility>

#include "trainer/options/option_access.h"

namespace trainer {
namespace {

// "[=====>    ]"
std::string Bar(double fraction, int width) {
  const int filled = static_cast<int>(std::clamp(fraction, 0.0, 1.0) * width);
  std::string bar(static_cast<std::size_t>(width), ' ');
  std::fill_n(bar.begin(), filled, '=');
  if (filled < width) bar[static_cast<std::size_t>(filled)] = '>';
  return "[" + bar + "]";
}

}  // namespace

Progress::Progress(const ProgressOptions& options, RedrawnLine& line, WallClock clock)
    : options_(options), line_(line), clock_(std::move(clock)) {}

bool Eta::Begin(const StepMetrics& metrics, TimePoint now) {
  if (first_step_ >= 0) return false;
  first_step_ = metrics.steps_done();
  first_time_ = now;
  return true;
}

void Eta::LeaveOut(double seconds) {
  first_time_ +=
      std::chrono::duration_cast<TimePoint::duration>(std::chrono::duration<double>(seconds));
}

std::string Eta::Text(const StepMetrics& metrics, TimePoint now) const {
  const auto steps = static_cast<double>(metrics.steps_done() - first_step_);
  const auto left = static_cast<double>(metrics.total_steps - metrics.steps_done());
  const double eta = steps > 0 ? left * InSeconds(now - first_time_) / steps : left > 0 ? -1 : 0;
  return FormatDuration(eta);
}

std::string EpochText(const StepMetrics& metrics) {
  if (metrics.epochs == 0) return "";
  const std::int64_t epoch = std::min(metrics.epoch + 1, metrics.epochs);
  return fmt::format(" epoch {}/{}", epoch, metrics.epochs);
}

std::string Progress::Line(const StepMetrics& metrics, TimePoint now) const {
  return fmt::format("{}{} step {}/{} {:.1f} images/s loss {:.4f} lr {:.4g} eta {}", IsoTime(now),
                     EpochText(metrics), metrics.steps_done(), metrics.total_steps,
                     metrics.images_per_second, metrics.total_loss, metrics.learning_rate,
                     eta_.Text(metrics, now));
}

void Progress::Step(const StepMetrics& metrics) {
  const TimePoint now = clock_();
  const bool first = eta_.Begin(metrics, now);
  const double interval = options_.terminal ? options_.redraw_seconds : options_.interval_seconds;
  const bool last = metrics.steps_done() >= metrics.total_steps;
  const double since = InSeconds(now - last_print_);  // less than 0 where the clock was set back
  if (!first && !last && since >= 0 && since < interval) return;
  last_print_ = now;

  std::string line = Line(metrics, now);
  if (!options_.terminal) {
    line_.Write(line + "\n");
    return;
  }
  constexpr int kBarWidth = 12;
  const double fraction = static_cast<double>(metrics.steps_done()) /
                          static_cast<double>(std::max<std::int64_t>(metrics.total_steps, 1));
  line =
      Bar(fraction, kBarWidth) + " " + line.substr(line.find(' ') + 1);  // a screen needs no time
  // One column is left free: a full line would wrap and could not be redrawn.
  line.resize(std::min(line.size(), static_cast<std::size_t>(std::max(options_.columns() - 1, 1))));
  line_.Draw(options_.color ? "\x1b[32m" + line + "\x1b[0m" : line);
}

namespace {

// posix_spawn's attributes and file actions, destroyed at the end of the scope.
class SpawnSettings {
 public:
  SpawnSettings() {
    ::posix_spawn_file_actions_init(&files_);
    ::posix_spawnattr_init(&attributes_);
    for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
      ::posix_spawn_file_actions_addopen(&files_, descriptor, "/dev/null", O_RDWR, 0);
    }
    // What the training ignores is not to be ignored there.
    sigset_t defaults;
    sigset_t none;
    sigemptyset(&none);
    sigemptyset(&defaults);
    for (const int number : {SIGPIPE, SIGXFSZ, SIGTERM, SIGINT}) sigaddset(&defaults, number);
    ::posix_spawnattr_setsigdefault(&attributes_, &defaults);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  }
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&files_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  const posix_spawn_file_actions_t* files() const { return &files_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t files_ = {};
  posix_spawnattr_t attributes_ = {};
};

}  // namespace

BackgroundCommand::~BackgroundCommand() {
  const auto end = std::chrono::steady_clock::now() + kTimeout;
  while (!HasEnded()) {
    if (std::chrono::steady_clock::now() > end) {
      Kill();
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

bool BackgroundCommand::HasEnded() {
  if (child_ == 0) return true;
  int status = 0;
  if (::waitpid(child_, &status, WNOHANG) == 0) return false;
  child_ = 0;
  if (WIFSIGNALED(status)) {
    on_failure_(fmt::format("{} was ended by signal {}", program_, WTERMSIG(status)));
  } else if (WEXITSTATUS(status) != 0) {
    on_failure_(fmt::format("{} ended with exit code {}", program_, WEXITSTATUS(status)));
  }
  return true;
}

void BackgroundCommand::Kill() {
  ::kill(child_, SIGKILL);
  ::waitpid(std::exchange(child_, 0), nullptr, 0);
}

void BackgroundCommand::Give(const std::vector<std::string>& argv) {
  if (!HasEnded()) {
    Kill();
    on_failure_(program_ + " has not ended");
  }
  program_ = argv.front();
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const SpawnSettings settings;
  const int error = ::posix_spawnp(&child_, words.front(), settings.files(), settings.attributes(),
                                   words.data(), environ);
  if (error != 0) {
    child_ = 0;
    on_failure_(program_ + ": " + std::generic_category().message(error));
  }
}

JobComment::JobComment(Update update, WallClock clock)
    : update_(std::move(update)), clock_(std::move(clock)) {}

void JobComment::Step(const StepMetrics& metrics) {
  const TimePoint now = clock_();
  const double since = InSeconds(now - updated_);  // less than 0 where the clock was set back
  if (!eta_.Begin(metrics, now) && since >= 0 && since < kSecondsBetweenUpdates) return;
  updated_ = now;
  update_(Text(metrics, now));
}

std::string JobComment::Text(const StepMetrics& metrics, TimePoint now) const {
  return fmt::format("ddltraind step {}/{}{} loss {:.4f} {:.1f} images/s eta {}",
                     metrics.steps_done(), metrics.total_steps, EpochText(metrics),
                     metrics.total_loss, metrics.images_per_second, eta_.Text(metrics, now));
}

std::vector<std::string> CommentOrder(const std::string& job_id, const std::string& comment) {
  return {"scontrol", "update", "JobId=" + job_id, "Comment=" + comment};
}

namespace {

Contradictions ContradictionsOfJobComment(const std::set<std::string>& /*given*/,
                                          const Options& options) {
  return {{options.job_comment && !IsTraining(options.mode),
           "--job_comment shows how far a training is: --mode=" + NameOf(kModes, options.mode) +
               " has no steps"}};
}

std::unique_ptr<TrainingLog> OpenJobComment(const LoggedLaunch& launch) {
  if (!launch.options.job_comment) return nullptr;
  if (launch.job.empty()) {
    launch.log->warn(
        "--job_comment: there is no Slurm job to comment on (SLURM_JOB_ID is not set)");
    return nullptr;
  }
  const auto order = std::make_shared<BackgroundCommand>(
      [log = launch.log, has_reported = false](const std::string& why) mutable {
        if (std::exchange(has_reported, true)) return;
        log->warn("--job_comment: the comment of the job may be an old one: {}", why);
      });
  return std::make_unique<JobComment>([order, job = launch.job](const std::string& comment) {
    order->Give(CommentOrder(job, comment));
  });
}

}  // namespace

const LogFormat kJobComment = {
    .options = {{"job_comment",
                 "show how far the training is as the comment of its Slurm job (scontrol, once a "
                 "minute), which replaces the one it has",
                 kOurs, kSame, kFlag<&Options::job_comment>}},
    .open = OpenJobComment,
    .contradictions = ContradictionsOfJobComment};

}  // namespace trainer
