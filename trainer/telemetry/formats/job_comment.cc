// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/formats/job_comment.h"

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

namespace trainer {
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
  const bool is_first = first_step_ < 0;
  if (is_first) {
    first_step_ = metrics.steps_done();
    first_time_ = now;
  } else {
    // A clock that was set back is no reason to wait.
    const double since = InSeconds(now - updated_);
    if (since >= 0 && since < kSecondsBetweenUpdates) return;
  }
  updated_ = now;
  update_(Text(metrics, now));
}

std::string JobComment::Text(const StepMetrics& metrics, TimePoint now) const {
  const std::int64_t done = metrics.steps_done() - first_step_;
  const double left = done > 0 ? InSeconds(now - first_time_) / static_cast<double>(done) *
                                     static_cast<double>(metrics.total_steps - metrics.steps_done())
                               : -1;
  // People count epochs from 1; at the very end the last one stays.
  const std::string epoch =
      metrics.epochs > 0
          ? fmt::format(" epoch {}/{}", std::min(metrics.epoch + 1, metrics.epochs), metrics.epochs)
          : "";
  return fmt::format("ddltraind step {}/{}{} loss {:.4f} {:.1f} images/s eta {}",
                     metrics.steps_done(), metrics.total_steps, epoch, metrics.total_loss,
                     metrics.images_per_second, FormatDuration(left));
}

std::vector<std::string> CommentOrder(const std::string& job_id, const std::string& comment) {
  return {"scontrol", "update", "JobId=" + job_id, "Comment=" + comment};
}

}  // namespace trainer
