// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/command_runner.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>

#include "trainer/core/error.h"

namespace bench {
namespace {

constexpr std::array kStopSignals = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
constexpr timespec kBetweenCalls = {0, 200'000'000};

std::string ErrorText(int error) { return std::generic_category().message(error); }

// In the child: nothing but system calls.  Returns only when exec has failed.
void Become(char* const* argv, int input, int output, pid_t parent, const sigset_t& mask) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(EX_UNAVAILABLE);
  ::dup2(input, STDIN_FILENO);
  if (output >= 0) {
    ::dup2(output, STDOUT_FILENO);
    ::dup2(output, STDERR_FILENO);
  }
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  ::execvp(argv[0], argv);
}

}  // namespace

CommandRunner::CommandRunner() {
  ::signal(SIGCHLD, SIG_DFL);  // whoever started us may have ignored it
  sigemptyset(&stop_signals_);
  for (const int number : kStopSignals) {
    // What nohup ignores is ignored; blocked it would be waited for.
    struct sigaction action {};
    ::sigaction(number, nullptr, &action);
    if (action.sa_handler != SIG_IGN) sigaddset(&stop_signals_, number);
  }
  sigset_t blocked = stop_signals_;
  sigaddset(&blocked, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &blocked, &before_);
}

CommandRunner::~CommandRunner() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }

int CommandRunner::StopSignal() {
  const timespec at_once{};
  const int number = ::sigtimedwait(&stop_signals_, nullptr, &at_once);
  if (number > 0 && stop_signal_ == 0) stop_signal_ = number;
  return stop_signal_;
}

int CommandRunner::Run(const std::vector<std::string>& argv, const std::filesystem::path& output,
                       const std::function<void()>& meanwhile) {
  int output_fd = -1;
  if (!output.empty()) {
    output_fd = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (output_fd < 0) {
      throw trainer::Error(EX_OSERR, "cannot write " + output.string() + ": " + ErrorText(errno));
    }
  }
  const int input_fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  std::array<int, 2> failure{};
  if (input_fd < 0 || ::pipe2(failure.data(), O_CLOEXEC) != 0) {
    throw trainer::OsError("cannot start " + argv[0], errno);
  }
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    Become(words.data(), input_fd, output_fd, parent, before_);
    const int error = errno;
    [[maybe_unused]] const ssize_t ignored = ::write(failure[1], &error, sizeof error);
    ::_exit(EX_UNAVAILABLE);
  }
  const int fork_error = errno;
  ::close(input_fd);
  ::close(failure[1]);
  if (output_fd >= 0) ::close(output_fd);
  int exec_error = 0;
  // The pipe ends without a word as the program starts.
  const ssize_t count = child < 0 ? 0 : ::read(failure[0], &exec_error, sizeof exec_error);
  ::close(failure[0]);
  if (child < 0) throw trainer::OsError("cannot start " + argv[0], fork_error);

  sigset_t awaited = stop_signals_;
  sigaddset(&awaited, SIGCHLD);
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    const int number = meanwhile ? ::sigtimedwait(&awaited, nullptr, &kBetweenCalls)
                                 : ::sigwaitinfo(&awaited, nullptr);
    if (meanwhile) meanwhile();
    if (number <= 0 || number == SIGCHLD) continue;
    if (stop_signal_ == 0) stop_signal_ = number;
    ::kill(child, number);
  }
  if (meanwhile) meanwhile();
  if (count > 0) {
    throw trainer::Error(EX_UNAVAILABLE, "cannot start " + argv[0] + ": " + ErrorText(exec_error));
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace bench
