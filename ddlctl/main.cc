// SPDX-License-Identifier: Apache-2.0
//
// ddlctl: sees and asks a training of ddltraind that runs.

#include <fmt/format.h>
#include <langinfo.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <clocale>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "ddlctl/elsewhere.h"
#include "ddlctl/options.h"
#include "ddlctl/session.h"
#include "ddlctl/status_text.h"
#include "ddlctl/watch_view.h"
#include "launcher/base/environment.h"
#include "launcher/spawn/child_environment.h"
#include "support/unknown_argument.h"
#include "trainer/core/error.h"
#include "trainer/telemetry/clock.h"

namespace {

using ddlctl::Command;
using ddlctl::Options;
using ddlctl::Session;
using trainer::ControlOrder;
using trainer::Error;
using trainer::RunStatus;

constexpr double kSecondsBetweenAsks = 0.2;  // until an order is obeyed

void Sleep(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

void Print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw trainer::OsError("cannot write the output", errno);
  }
}

bool DrawsOnTerminal(const Options& options) {
  return options.command == Command::kWatch && isatty(STDOUT_FILENO) == 1;
}

ddlctl::Screen ScreenNow() {
  ddlctl::Screen screen;
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) screen.columns = size.ws_col;
  screen.is_utf8 = std::string(nl_langinfo(CODESET)) == "UTF-8";
  return screen;
}

// The end of a training that was waited for.
void RequireNoFailure(const RunStatus& status) {
  if (status.state != trainer::RunState::kFailed) return;
  throw Error(EX_UNAVAILABLE, "the training has failed after " + ddlctl::StepText(status) +
                                  ": its output says why");
}

int Watch(Session& session, const Options& options) {
  const bool draws = DrawsOnTerminal(options);
  const double interval = options.interval > 0 ? options.interval : draws ? 1 : 10;
  ddlctl::Seen seen;
  std::size_t drawn = 0;
  std::string before;
  for (;;) {
    const RunStatus status = session.Status();
    seen.Add(status);
    if (draws) {
      std::string text = drawn > 0 ? fmt::format("\x1b[{}A\r", drawn) : "";
      const std::vector<std::string> lines = ddlctl::Draw(status, seen, ScreenNow());
      for (const std::string& line : lines) text += line + "\x1b[K\n";
      drawn = lines.size();
      Print(text + "\x1b[J");
    } else if (const std::string line = ddlctl::StatusLine(status); line != before) {
      Print(trainer::IsoTime(trainer::SystemClock()()) + " " + line + "\n");
      before = line;
    }
    if (IsEnd(status.state)) {
      RequireNoFailure(status);
      return EX_OK;
    }
    Sleep(interval);
  }
}

// What has become of an order that was obeyed.
std::string Outcome(ControlOrder order, const RunStatus& status) {
  const std::string saved = status.checkpoint_step < 0
                                ? std::string("no checkpoint")
                                : fmt::format("the checkpoint of step {}", status.checkpoint_step);
  switch (order) {
    case ControlOrder::kPause:
      return "paused after " + ddlctl::StepText(status);
    case ControlOrder::kResume:
      return "going on after " + ddlctl::StepText(status);
    case ControlOrder::kCheckpoint:
      return saved + " is written";
    case ControlOrder::kStop:
      return "stopped after " + ddlctl::StepText(status) + ", with " + saved;
    case ControlOrder::kSet:
      break;
  }
  return fmt::format("display_every is {}", status.display_every);
}

bool IsAsked(ControlOrder order, const RunStatus& status) {
  return std::find(status.asked.begin(), status.asked.end(), order) != status.asked.end();
}

int Order(Session& session, const Options& options) {
  const ControlOrder order = *options.request.order;
  const trainer::ControlAnswer answer = session.Ask(options.request);
  if (!answer.refusal.empty()) throw Error(EX_TEMPFAIL, ddlctl::Harmless(answer.refusal));
  RunStatus status = answer.status;
  if (options.no_wait) return EX_OK;
  const bool is_stop = order == ControlOrder::kStop;
  while (!IsEnd(status.state) && (is_stop || IsAsked(order, status))) {
    Sleep(kSecondsBetweenAsks);
    status = session.Status();
  }
  RequireNoFailure(status);
  const bool has_paused = order != ControlOrder::kPause || !IsEnd(status.state);
  if (!has_paused) {
    throw Error(EX_TEMPFAIL,
                "the training has ended before it could pause: " + ddlctl::StepText(status));
  }
  Print(Outcome(order, status) + "\n");
  return EX_OK;
}

// Becomes srun, which runs the same command where the training is.
[[noreturn]] void RunElsewhere(const Session& session, const Options& options,
                               const std::vector<std::string>& arguments) {
  const trainer::ControlAddress& address = session.address();
  std::error_code ignored;
  const ddlctl::RemoteCall call = {
      .program = std::filesystem::read_symlink("/proc/self/exe", ignored).string(),
      .arguments = arguments,
      .job = options.job.empty() ? address.job : options.job,
      .on_terminal = DrawsOnTerminal(options) && isatty(STDIN_FILENO) == 1};
  const std::string where = "the training runs on " + address.host + ", not on this machine: ";
  std::vector<std::string> command = ddlctl::SrunCommand(address, call);
  if (options.srun == "never" || command.empty()) {
    throw Error(EX_UNAVAILABLE, where + WhatToType(address, call) +
                                    (command.empty() ? "; or name its job of Slurm: --job N" : ""));
  }
  std::vector<std::string> environment =
      launcher::ToStrings(launcher::EnvironmentForSrun(launcher::SnapshotEnvironment()));
  const auto pointers = [](std::vector<std::string>& words) {
    std::vector<char*> result;
    for (std::string& word : words) result.push_back(word.data());
    result.push_back(nullptr);
    return result;
  };
  execvpe(command.front().c_str(), pointers(command).data(), pointers(environment).data());
  throw Error(EX_UNAVAILABLE, where + "srun cannot be started (" +
                                  std::generic_category().message(errno) + "); " +
                                  WhatToType(address, call));
}

// Whether it goes on until the training ends.
bool WaitsForTheEnd(const Options& options) {
  const bool is_stop =
      options.command == Command::kOrder && *options.request.order == ControlOrder::kStop;
  return options.command == Command::kWatch || (is_stop && !options.no_wait);
}

// When the job of the training ends, Slurm ends all steps in it, also that of ddlctl, which may not
// have seen the end yet.  Then the last words of the training count, which all nodes can read.
int WaitElsewhere(const Session& session, const Options& options,
                  const std::vector<std::string>& arguments) {
  const pid_t child = fork();
  if (child < 0)
    throw Error(EX_OSERR, "cannot start srun: " + std::generic_category().message(errno));
  if (child == 0) RunElsewhere(session, options, arguments);
  int end = 0;
  while (waitpid(child, &end, 0) < 0 && errno == EINTR) {
  }
  const int code = WIFEXITED(end) ? WEXITSTATUS(end) : EX_UNAVAILABLE;
  const bool has_answered = code == EX_OK || (code >= EX__BASE && code <= EX__MAX);
  if (WIFEXITED(end) && has_answered) return code;
  constexpr int kLooks = 25;
  for (int i = 0; i < kLooks; ++i) {
    Session ended(options.results_dir);
    if (ended.is_within_reach()) {
      const RunStatus status = ended.Status();
      RequireNoFailure(status);
      Print((options.command == Command::kWatch ? ddlctl::StatusLine(status)
                                                : Outcome(ControlOrder::kStop, status)) +
            "\n");
      return EX_OK;
    }
    Sleep(kSecondsBetweenAsks);
  }
  return code;
}

int RunCommand(const Options& options, const std::vector<std::string>& arguments) {
  if (options.command == Command::kNone) {
    throw Error(EX_USAGE,
                "a command is missing: status, watch, pause, resume, checkpoint, stop or set "
                "(ddlctl --help)");
  }
  Session session(options.results_dir);
  if (!session.is_within_reach()) {
    if (WaitsForTheEnd(options)) return WaitElsewhere(session, options, arguments);
    RunElsewhere(session, options, arguments);
  }
  if (options.command == Command::kWatch) return Watch(session, options);
  if (options.command == Command::kOrder) return Order(session, options);
  const RunStatus status = session.Status();
  Print(options.as_json ? FormatStatus(status) + "\n" : ddlctl::StatusText(status));
  return EX_OK;
}

int Run(int argc, char** argv) {
  CLI::App app("Sees and asks a training of ddltraind that runs.", "ddlctl");
  Options options;
  ddlctl::DescribeOptions(app, options);
  app.allow_extras();
  for (CLI::App* sub : app.get_subcommands({})) sub->allow_extras();
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    throw Error(EX_USAGE, std::string(error.what()) + " (ddlctl --help lists the options)");
  }
  const bool has_command = options.command != Command::kNone;
  const CLI::App& chosen = has_command ? *app.get_subcommands().front() : app;
  const std::vector<std::string> unknown = chosen.remaining();
  if (!unknown.empty())
    throw Error(EX_USAGE, support::DescribeUnknownArgument(unknown.front(), chosen, "ddlctl"));
  return RunCommand(options, {argv + 1, argv + argc});
}

}  // namespace

int main(int argc, char** argv) {
  std::setlocale(LC_CTYPE, "");
  try {
    return Run(argc, argv);
  } catch (const Error& error) {
    std::fprintf(stderr, "ddlctl: %s\n", error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ddlctl: %s\n", error.what());
    return EX_SOFTWARE;
  }
}
