// SPDX-License-Identifier: Apache-2.0

#include "launcher/system/command_output.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>

namespace launcher {
namespace {

constexpr std::size_t kMaxBytes = 16777216;
constexpr std::chrono::microseconds kMoment{200};
constexpr int kStatusNotKnown = 127 << 8;  // that of a shell without such a command

ChildProcess Start(const std::vector<std::string>& argv, const Environment& environment) {
  ChildSpec spec;
  spec.argv = argv;
  spec.environment = ToStrings(environment);
  sigemptyset(&spec.signal_mask);
  return StartChild(spec);
}

// Adds what is there to `text`; closes the pipe at its end.
void ReadInto(support::Descriptor* pipe, std::string* text) {
  std::array<char, 16384> chunk;
  while (pipe->is_open()) {
    const ssize_t got = read(pipe->fd(), chunk.data(), chunk.size());
    if (got < 0) return;
    if (got == 0) pipe->Close();
    const std::size_t room = kMaxBytes - std::min(kMaxBytes, text->size());
    text->append(chunk.data(), std::min(static_cast<std::size_t>(got), room));
  }
}

}  // namespace

CommandOutput::CommandOutput(const std::vector<std::string>& argv, const Environment& environment)
    : child_(Start(argv, environment)) {}

CommandOutput::~CommandOutput() {
  if (HasEnded()) return;
  kill(-child_.pid, SIGKILL);
  waitpid(child_.pid, nullptr, 0);
}

bool CommandOutput::HasEnded() {
  ReadInto(&child_.stdout_pipe, &text_);
  ReadInto(&child_.stderr_pipe, &text_);
  if (child_.pid == 0) return true;
  const pid_t ended = waitpid(child_.pid, &status_, WNOHANG);
  if (ended < 0 && errno == ECHILD) status_ = kStatusNotKnown;
  if (ended != 0) child_.pid = 0;
  return child_.pid == 0;
}

bool CommandOutput::Wait(std::chrono::milliseconds limit) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point deadline = Clock::now() + limit;
  while (child_.stdout_pipe.is_open() || child_.stderr_pipe.is_open()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) break;
    // A closed pipe has the number -1, which poll ignores.
    std::array<pollfd, 2> ready = {
        {{child_.stdout_pipe.fd(), POLLIN, 0}, {child_.stderr_pipe.fd(), POLLIN, 0}}};
    poll(ready.data(), ready.size(), static_cast<int>(left.count()));
    ReadInto(&child_.stdout_pipe, &text_);
    ReadInto(&child_.stderr_pipe, &text_);
  }
  // The pipes are closed a moment before the command ends, or long before that.
  while (!HasEnded() && Clock::now() < deadline) std::this_thread::sleep_for(kMoment);
  if (child_.pid != 0) {
    is_over_limit_ = true;
    kill(-child_.pid, SIGKILL);
    waitpid(child_.pid, &status_, 0);
    child_.pid = 0;
  }
  return WIFEXITED(status_) && WEXITSTATUS(status_) == 0;
}

bool CommandOutput::WasKilledByOthers() const { return !is_over_limit_ && WIFSIGNALED(status_); }

}  // namespace launcher
