// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/runs/command_runner.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <string_view>

#include "support/descriptor.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

constexpr std::array kStopSignals = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
constexpr timespec kBetweenCalls = {0, 200'000'000};

std::string ErrorText(int error) { return std::generic_category().message(error); }

// What a child is started with: everything is there before fork.
struct Prepared {
  std::vector<char*> words;
  std::vector<char*> variables;
  cpu_set_t cpus = {};
  bool has_cpus = false;
  int input = -1;
  int output = -1;  // -1: as ours
};

// In the child: nothing but system calls.  Returns only when exec has failed.
void Become(const Prepared& prepared, pid_t parent, const sigset_t& mask) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(EX_UNAVAILABLE);
  ::dup2(prepared.input, STDIN_FILENO);
  if (prepared.output >= 0) {
    ::dup2(prepared.output, STDOUT_FILENO);
    ::dup2(prepared.output, STDERR_FILENO);
  }
  if (prepared.has_cpus) ::sched_setaffinity(0, sizeof prepared.cpus, &prepared.cpus);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  ::execvpe(prepared.words.front(), prepared.words.data(), prepared.variables.data());
}

// "NAME=value" of this program's variables and of `others`, which come before them.
std::vector<std::string> VariablesWith(
    const std::vector<std::pair<std::string, std::string>>& others) {
  std::vector<std::string> variables;
  const auto is_other = [&](std::string_view variable) {
    return std::any_of(others.begin(), others.end(), [&](const auto& other) {
      return variable.substr(0, variable.find('=')) == other.first;
    });
  };
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!is_other(*variable)) variables.emplace_back(*variable);
  }
  for (const auto& [name, value] : others) variables.push_back(name + "=" + value);
  return variables;
}

std::vector<char*> PointersTo(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
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

pid_t CommandRunner::Start(const Command& command) const {
  const std::string& program = command.argv.front();
  const support::Descriptor output(
      command.output.empty()
          ? -1
          : ::open(command.output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!command.output.empty() && output.fd() < 0) {
    throw trainer::Error(EX_OSERR,
                         "cannot write " + command.output.string() + ": " + ErrorText(errno));
  }
  const support::Descriptor input(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  std::array<int, 2> failure{};
  if (input.fd() < 0 || ::pipe2(failure.data(), O_CLOEXEC) != 0) {
    throw trainer::OsError("cannot start " + program, errno);
  }
  const std::vector<std::string> variables = VariablesWith(command.variables);
  Prepared prepared{.words = PointersTo(command.argv),
                    .variables = PointersTo(variables),
                    .has_cpus = !command.cpus.empty(),
                    .input = input.fd(),
                    .output = output.fd()};
  CPU_ZERO(&prepared.cpus);
  for (const int cpu : command.cpus) CPU_SET(static_cast<std::size_t>(cpu), &prepared.cpus);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    Become(prepared, parent, before_);
    const int error = errno;
    [[maybe_unused]] const ssize_t ignored = ::write(failure[1], &error, sizeof error);
    ::_exit(EX_UNAVAILABLE);
  }
  const int fork_error = errno;
  ::close(failure[1]);
  int exec_error = 0;
  // The pipe ends without a word as the program starts.
  const ssize_t count = child < 0 ? 0 : ::read(failure[0], &exec_error, sizeof exec_error);
  ::close(failure[0]);
  if (child < 0) throw trainer::OsError("cannot start " + program, fork_error);
  if (count > 0) {
    ::waitpid(child, nullptr, 0);
    throw trainer::Error(EX_UNAVAILABLE, "cannot start " + program + ": " + ErrorText(exec_error));
  }
  return child;
}

void CommandRunner::WaitForAll(std::vector<pid_t>& children, std::vector<int>& codes,
                               const std::function<void()>& meanwhile) {
  sigset_t awaited = stop_signals_;
  sigaddset(&awaited, SIGCHLD);
  for (;;) {
    bool is_any_left = false;
    for (std::size_t i = 0; i < children.size(); ++i) {
      int status = 0;
      if (children[i] != 0 && ::waitpid(children[i], &status, WNOHANG) != 0) {
        children[i] = 0;
        codes[i] = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
      }
      is_any_left = is_any_left || children[i] != 0;
    }
    if (!is_any_left) return;
    const int number = meanwhile ? ::sigtimedwait(&awaited, nullptr, &kBetweenCalls)
                                 : ::sigwaitinfo(&awaited, nullptr);
    if (meanwhile) meanwhile();
    if (number <= 0 || number == SIGCHLD) continue;
    if (stop_signal_ == 0) stop_signal_ = number;
    for (const pid_t child : children) {
      if (child != 0) ::kill(child, number);
    }
  }
}

std::vector<int> CommandRunner::RunAll(const std::vector<Command>& commands,
                                       const std::function<void()>& meanwhile) {
  std::vector<pid_t> children(commands.size(), 0);
  std::vector<int> codes(commands.size(), EX_OK);
  try {
    for (std::size_t i = 0; i < commands.size(); ++i) children[i] = Start(commands[i]);
  } catch (const trainer::Error&) {
    for (const pid_t child : children) {
      if (child != 0) ::kill(child, SIGTERM);
    }
    WaitForAll(children, codes, nullptr);
    throw;
  }
  WaitForAll(children, codes, meanwhile);
  if (meanwhile) meanwhile();
  return codes;
}

int CommandRunner::Run(const std::vector<std::string>& argv, const std::filesystem::path& output,
                       const std::function<void()>& meanwhile) {
  return RunAll({{.argv = argv, .output = output}}, meanwhile).front();
}

}  // namespace bench
