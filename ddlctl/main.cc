// SPDX-License-Identifier: Apache-2.0
//
// ddlctl: sees and asks a training of ddltraind that runs, and looks at its checkpoints.

#include <fmt/format.h>
#include <langinfo.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "ddlctl/attach.h"
#include "ddlctl/checkpoints.h"
#include "ddlctl/history.h"
#include "ddlctl/job.h"
#include "ddlctl/options.h"
#include "ddlctl/session.h"
#include "ddlctl/stacks.h"
#include "ddlctl/status_text.h"
#include "ddlctl/why.h"
#include "launcher/base/environment.h"
#include "launcher/launch/child_environment.h"
#include "support/standard_streams.h"
#include "support/terminal.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/core/error.h"
#include "trainer/telemetry/text/clock.h"

namespace {

using ddlctl::Command;
using ddlctl::Options;
using ddlctl::Session;
using trainer::ControlCommand;
using trainer::Error;
using trainer::RunStatus;

constexpr char kTraining[] = "the training";
constexpr double kPollSeconds = 0.2;  // until an order is obeyed

void Sleep(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

void Print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw trainer::OsError("cannot write the output", errno);
  }
}

bool DrawsOnTerminal(const Options& options) {
  return options.command == Command::kWatch &&
         support::CanRedraw(STDOUT_FILENO, std::getenv("TERM"));
}

ddlctl::Screen ScreenNow() {
  ddlctl::Screen screen;
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
    if (size.ws_col > 0) screen.columns = size.ws_col;
    screen.rows = size.ws_row;
  }
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
std::string Outcome(ControlCommand command, const RunStatus& status) {
  const std::string saved = status.checkpoint_step < 0
                                ? std::string("no checkpoint")
                                : fmt::format("the checkpoint of step {}", status.checkpoint_step);
  switch (command) {
    case ControlCommand::kPause:
      return "paused after " + ddlctl::StepText(status);
    case ControlCommand::kResume:
      return "resumed after " + ddlctl::StepText(status);
    case ControlCommand::kCheckpoint:
      return saved + " is written";
    case ControlCommand::kEvaluate:
      return "evaluated after " + ddlctl::StepText(status) + "; its log says what was found";
    case ControlCommand::kStop:
      return "stopped after " + ddlctl::StepText(status) + ", with " + saved;
    case ControlCommand::kSet:
    case ControlCommand::kStacks:
      break;
  }
  return fmt::format("display_every is {}", status.display_every);
}

bool IsRequested(ControlCommand command, const RunStatus& status) {
  return std::find(status.requested.begin(), status.requested.end(), command) !=
         status.requested.end();
}

int Order(Session& session, const Options& options) {
  const ControlCommand command = *options.request.command;
  const trainer::ControlAnswer answer = session.Ask(options.request);
  if (!answer.rejection.empty()) throw Error(EX_TEMPFAIL, ddlctl::RejectionText(answer));
  RunStatus status = answer.status;
  if (options.no_wait) return EX_OK;
  const bool is_stop = command == ControlCommand::kStop;
  // A checkpoint is obeyed when it is begun; it is written beside training.
  const auto is_unwritten = [&] {
    return command == ControlCommand::kCheckpoint && status.checkpoint_step < answer.status.step;
  };
  while (!IsEnd(status.state) && (is_stop || IsRequested(command, status) || is_unwritten())) {
    Sleep(kPollSeconds);
    status = session.Status();
  }
  RequireNoFailure(status);
  // At its very end a training is evaluated without being asked to.
  const bool needs_more_steps =
      command == ControlCommand::kPause ||
      (command == ControlCommand::kEvaluate && status.step < status.steps);
  if (IsEnd(status.state) && needs_more_steps) {
    throw Error(EX_TEMPFAIL, fmt::format("the training has ended before it could {}: {}",
                                         NameOf(command), ddlctl::StepText(status)));
  }
  Print(Outcome(command, status) + "\n");
  return EX_OK;
}

// Becomes srun, which runs the same command where `what` is.
[[noreturn]] void RunRemotely(const trainer::ControlAddress& address, const std::string& what,
                              const Options& options, const std::vector<std::string>& arguments) {
  std::error_code ignored;
  const ddlctl::RemoteCall call = {
      .program = std::filesystem::read_symlink("/proc/self/exe", ignored).string(),
      .arguments = arguments,
      .job = options.job.empty() ? address.job : options.job,
      .on_terminal = DrawsOnTerminal(options) && isatty(STDIN_FILENO) == 1};
  const std::string where = what + " runs on " + address.host + ", not on this machine: ";
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
      options.command == Command::kOrder && *options.request.command == ControlCommand::kStop;
  return options.command == Command::kWatch || (is_stop && !options.no_wait);
}

// When the job of the training ends, Slurm ends all steps in it, also that of ddlctl, which may not
// have seen the end yet.  Then the last words of the training count, which all nodes can read.
int WaitRemotely(const Session& session, const Options& options,
                 const std::vector<std::string>& arguments) {
  const pid_t child = fork();
  if (child < 0)
    throw Error(EX_OSERR, "cannot start srun: " + std::generic_category().message(errno));
  if (child == 0) RunRemotely(session.address(), kTraining, options, arguments);
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
                                                : Outcome(ControlCommand::kStop, status)) +
            "\n");
      return EX_OK;
    }
    Sleep(kPollSeconds);
  }
  return code;
}

void AddError(const std::string& line) { std::fputs(("ddlctl: " + line).c_str(), stderr); }

// What needs no training that runs; nullopt for any other command.
std::optional<int> LookAtCheckpoints(const Options& options) {
  switch (options.command) {
    case Command::kListCheckpoints:
      Print(ddlctl::CheckpointTable(options.model_dir));
      return EX_OK;
    case Command::kVerifyCheckpoints:
      return ddlctl::VerifyCheckpoints(options.model_dir, options.step, Print, AddError);
    case Command::kExportCheckpoint:
      Print(ddlctl::ExportWeights(options.model_dir, options.step, options.export_file, AddError));
      return EX_OK;
    default:
      return std::nullopt;
  }
}

// The status of the job with the number that was asked for; does not return where it is elsewhere.
launcher::JobStatus StatusByNumber(const Options& options, std::vector<std::string> arguments) {
  const std::string& number = options.results_dir;
  const launcher::Environment environment = launcher::SnapshotEnvironment();
  const std::vector<std::filesystem::path> bases = ddlctl::RunDirectoryBases(environment);
  std::string unread;
  std::optional<launcher::JobStatus> status = ddlctl::FindJobStatus(number, bases, &unread);
  if (!status && options.srun != "never") {
    const std::optional<ddlctl::RunningJob> job = ddlctl::FindRunningJob(number, environment);
    if (job && job->node != trainer::HostName()) {
      trainer::ControlAddress address;
      address.host = address.node = job->node;
      address.job = job->number;
      std::ranges::replace(arguments, number, job->number);
      RunRemotely(address, "the job", options, arguments);
    }
    if (job) status = ddlctl::FindJobStatus(job->number, bases, &unread);
  }
  if (status) return *status;
  throw Error(EX_UNAVAILABLE,
              "no ddlrun of job " + number +
                  " runs here: ask on the node of its script, or give its run directory (ddlrun "
                  "--run-dir); for a directory write ./" +
                  number + (unread.empty() ? "" : "; there is " + ddlctl::Harmless(unread)));
}

// The status of a job of ddlrun, by its number or its run directory; nullopt for anything else.
std::optional<int> LookAtJob(const Options& options, const std::vector<std::string>& arguments) {
  if (options.command != Command::kStatus) return std::nullopt;
  const std::string& name = options.results_dir;
  std::optional<launcher::JobStatus> status =
      ddlctl::IsJobNumber(name) ? StatusByNumber(options, arguments) : ddlctl::ReadJobStatus(name);
  if (!status) return std::nullopt;
  if (!status->ends && !status->job.empty()) {
    status->ends = ddlctl::EndOfJob(status->job, launcher::SnapshotEnvironment());
  }
  const double now = trainer::InSeconds(trainer::SystemClock()().time_since_epoch());
  Print(options.as_json ? ddlctl::JobJson(*status, now) + "\n" : ddlctl::JobText(*status, now));
  return EX_OK;
}

int ShowHistory(const Options& options) {
  int code = EX_OK;
  std::vector<launcher::LaunchRecord> launches =
      ddlctl::ReadLaunches(options.results_dir, [&code](const std::string& line) {
        AddError(line + "\n");
        code = EX_DATAERR;
      });
  const double now = trainer::InSeconds(trainer::SystemClock()().time_since_epoch());
  const launcher::LaunchHistory history = launcher::HistoryOf(std::move(launches), now);
  Print(options.as_json ? ddlctl::HistoryJson(history) + "\n" : ddlctl::HistoryText(history));
  return code;
}

int RunCommand(const Options& options, const std::vector<std::string>& arguments) {
  if (options.command == Command::kNone) {
    throw Error(EX_USAGE,
                "a command is missing: status, watch, pause, resume, checkpoint, evaluate, stop, "
                "set, stacks, why, history or attach (ddlctl --help)");
  }
  if (const std::optional<int> code = LookAtCheckpoints(options)) return *code;
  if (const std::optional<int> code = LookAtJob(options, arguments)) return *code;
  if (options.command == Command::kHistory) return ShowHistory(options);
  if (options.command == Command::kWhy || options.command == Command::kAttach) {
    std::error_code ignored;
    ddlctl::WhyOptions job = {.name = options.results_dir,
                              .program = std::filesystem::read_symlink("/proc/self/exe", ignored),
                              .host = trainer::HostName(),
                              .environment = launcher::SnapshotEnvironment(),
                              .may_use_srun = options.srun != "never",
                              .is_verbose = options.is_verbose,
                              .as_json = options.as_json,
                              .facts_only = options.facts_only,
                              .print = Print};
    if (options.command == Command::kWhy) return ddlctl::ShowWhy(job);
    job.with_stacks = false;
    return ddlctl::RunBesideRank(
        {.job = std::move(job),
         .rank = options.rank,
         .command = options.program,
         .on_terminal = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1});
  }
  Session session(options.results_dir);
  if (!session.is_within_reach()) {
    if (WaitsForTheEnd(options)) return WaitRemotely(session, options, arguments);
    RunRemotely(session.address(), kTraining, options, arguments);
  }
  if (options.command == Command::kWatch) return Watch(session, options);
  if (options.command == Command::kOrder) return Order(session, options);
  if (options.command == Command::kStacks) {
    return ddlctl::ShowStacks(session, {.results_dir = options.results_dir,
                                        .all_threads = options.all_threads,
                                        .print = Print,
                                        .note = AddError});
  }
  const RunStatus status = session.Status();
  Print(options.as_json ? FormatStatus(status) + "\n" : ddlctl::StatusText(status));
  return EX_OK;
}

int Run(int argc, char** argv) {
  Options options;
  std::vector<std::string> arguments(argv + 1, argv + argc);
  const std::vector<std::string> program = ddlctl::TakeProgram(&arguments);
  const support::Parsed parsed = support::Parse(ddlctl::DescribeOptions(options), arguments);
  if (!parsed.answer.empty()) {
    Print(parsed.answer);
    return EX_OK;
  }
  options.program = program;
  return RunCommand(options, arguments);
}

}  // namespace

int main(int argc, char** argv) {
  support::OpenStandardStreams();
  std::setlocale(LC_CTYPE, "");
  try {
    return Run(argc, argv);
  } catch (const Error& error) {
    std::fprintf(stderr, "ddlctl: %s\n", error.what());
    return error.exit_code();
  } catch (const support::UsageError& error) {
    std::fprintf(stderr, "ddlctl: %s\n", error.what());
    return EX_USAGE;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ddlctl: %s\n", error.what());
    return EX_SOFTWARE;
  }
}
